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

VALIDATE = "validate"
"""The step that judges the built model itself."""

if TYPE_CHECKING:
    from collections.abc import Iterator

    from engine.tuning.layer_search import Evaluation, LayerReport, NeededLayer


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
    from engine.tuning.trials import TrialBuilder

    [recipe] = arguments.recipes
    if arguments.write is not None:
        from engine.drafts import edited

        edited.refuse_place(arguments.write, recipe)
    trials = TrialBuilder(recipe, lambda _: None, **options.reading(arguments))
    search = LayerSearch(trials, arguments.keep_in, _tell, _say)
    try:
        report = search.run()
        has_answer = bool(report.layers) and report.error is None
        if has_answer:
            report = search.with_costs(report)
    except KeyboardInterrupt:
        _say("what is built stays in the store: the same command goes on from here")
        raise
    print(json.dumps(_fields(report), indent=1)) if arguments.json else _show(report)
    if report.layers is None or report.error is not None:
        return Exit.JUDGED
    if arguments.write is not None and has_answer:
        edited.write(_written(arguments, report), arguments.write, recipe)
        _say(f"wrote {arguments.write}")
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

    builds = lists.counted(len(report.evaluations), "build")
    if report.layers is None:
        figures = report.evaluations[-1].figures
        print(f"{report.recipe}: no set of layers helps: even with all {report.candidates} kept, {figures}")
        return
    if not report.layers:
        print(f"{report.recipe}: the accuracy is within the bounds already")
    else:
        count = lists.counted(len(report.layers), "layer")
        print(f"{report.recipe} in {report.precision}: {count} must stay in {report.keeps_in} ({builds})")
        rows = [("layer", "operators", "if only this one is not kept", "faster without it")]
        rows += [
            (layer.name, ", ".join(layer.operators), layer.without, str(layer.faster_without or "not measured"))
            for layer in report.layers
        ]
        grid.show(rows, indent=2)
    for note in _notes(report):
        print(note)


def _notes(report: LayerReport) -> Iterator[str]:
    if not report.is_monotone:
        yield "a build missed a bound though it kept more layers than one that did not: another set may be smaller"
    if report.judged_by != VALIDATE:
        yield f"judged by {report.judged_by}, on the CPU: the GPU of the recipe is not here"
    if report.not_timed:
        yield f"what the layers cost in latency is not measured: {report.not_timed}"
    if report.error is not None:
        yield f"the accuracy is within the bounds, but: {report.error}"


def _written(arguments: argparse.Namespace, report: LayerReport) -> str:
    """Return the recipe's text with the layers kept, and at the top the figures that chose them."""
    from engine.drafts import edited
    from engine.recipe.node import plain
    from engine.recipe.overrides import SET, assignments

    [recipe] = arguments.recipes
    chosen = {".".join(each.path): plain(each.value) for each in assignments(SET, arguments.set)}
    head = ["The layers that `recipe bisect` has found; if only one of them is not kept:"]
    head += [f"- {layer.name}: {layer.without}{_faster(layer)}" for layer in report.layers or ()]
    return edited.edited(recipe, {**chosen, **report.point}, {}, head, only=arguments.only, allow=arguments.allow_path)


def _faster(layer: NeededLayer) -> str:
    return "" if layer.faster_without is None else f"; {layer.faster_without} as fast"
