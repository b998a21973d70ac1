"""Find the smallest set of layers that must stay in a higher precision, so that the accuracy is within its bounds."""

from __future__ import annotations

import argparse
import json
import sys
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING

from engine.commands import options
from engine.errors import Exit

if TYPE_CHECKING:
    from engine.tuning.layer_search import Evaluation, LayerReport


def arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments of `recipe bisect`."""
    options.add_recipes(parser, many=False)
    parser.add_argument(
        "--keep-in",
        metavar="PRECISION",
        choices=("fp32", "fp16"),
        help="the precision of the kept layers: fp32, or beside int8, fp8 and int4 on a GPU fp16 (the default there)",
    )
    parser.add_argument("--write", metavar="FILE", type=Path, help="write the recipe with these layers kept")
    options.add_json(parser)


def run(arguments: argparse.Namespace) -> Exit:
    """Build until the layers are known, and print them. Exit code 4 where no set of layers helps."""
    from engine.tuning.layer_search import LayerSearch
    from engine.tuning.trials import Trials

    [recipe] = arguments.recipes
    trials = Trials(recipe, lambda event: None, **options.reading(arguments))
    search = LayerSearch(trials, arguments.keep_in, _tell, _say)
    try:
        report = search.run()
    except KeyboardInterrupt:
        _say("what is built is kept: the same command goes on from here")
        raise
    print(json.dumps(_fields(report), indent=1)) if arguments.json else _show(report)
    if report.layers is None or report.error is not None:
        return Exit.JUDGED
    if arguments.write is not None and report.layers:
        _write(recipe, arguments.write, report)
    return Exit.OK


def _say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


def _tell(evaluation: Evaluation) -> None:
    from engine.text import lists

    names = evaluation.kept
    few = f"{names[0]} kept" if len(names) == 1 else f"{lists.counted(len(names), 'layer')} kept"
    mark = "within the bounds" if evaluation.passes else "missed"
    _say(f"{evaluation.number:4}  {few if names else 'none kept'}: {mark}: {evaluation.figures}")


def _fields(report: LayerReport) -> dict[str, object]:
    error = None if report.error is None else report.error.fields()
    return {**asdict(replace(report, error=None)), "error": error}


def _show(report: LayerReport) -> None:
    from engine.report import grid
    from engine.text import lists

    count = lists.counted(len(report.evaluations), "build")
    if report.layers is None:
        last = report.evaluations[-1]
        print(f"{report.recipe}: no set of layers helps: even with all {report.candidates} kept, {last.figures}")
    elif not report.layers:
        print(f"{report.recipe}: the accuracy is within the bounds, and no layer must be kept")
    else:
        names = lists.counted(len(report.layers), "layer")
        print(f"{report.recipe} in {report.precision}: {names} must stay in {report.keeps_in}; {count}")
        rows = [("layer", "operators", "if it is not kept")]
        rows += [(layer.name, ", ".join(layer.operators), layer.without) for layer in report.layers]
        grid.show(rows, indent=2)
