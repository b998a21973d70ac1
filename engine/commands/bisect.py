"""Find the smallest set of layers that must stay in a higher precision, so that the accuracy is within its bounds."""

from __future__ import annotations

import argparse
import json
import sys
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from engine.commands import options
from engine.errors import Exit

if TYPE_CHECKING:
    from engine.tuning.layer_search import LayerReport


def arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments of `recipe bisect`."""
    options.add_recipes(parser, many=False)
    parser.add_argument("--write", metavar="FILE", type=Path, help="write the recipe of one variant that keeps them")
    options.add_json(parser)


def run(arguments: argparse.Namespace) -> Exit:
    """Build until the layers are known, and print them. Raises JudgementError where no set of layers helps."""
    from engine.drafts import edited
    from engine.tuning.layer_search import LayerSearch
    from engine.tuning.trials import TrialBuilder

    [recipe] = arguments.recipes
    if arguments.write is not None:
        edited.refuse_place(arguments.write, recipe, arguments.allow_path)
    say = partial(print, file=sys.stderr, flush=True)
    report = LayerSearch(TrialBuilder(recipe, lambda _: None, **options.reading(arguments)), say).run()
    print(json.dumps(asdict(report), indent=1)) if arguments.json else _show(report)
    if arguments.write is not None and report.layers:
        edited.write(_written(arguments, report), arguments.write, recipe, arguments.allow_path)
    if arguments.write is not None:
        say(f"written: {arguments.write}" if report.layers else "nothing to write: no further layer needs to be kept")
    return Exit.OK


def _show(report: LayerReport) -> None:
    from engine.report import grid
    from engine.text import lists

    if report.layers:
        kept = f"{lists.counted(len(report.layers), 'layer')} must stay in {report.keeps_in}"
        print(f"{report.recipe} in {report.precision}: {kept} ({lists.counted(report.builds, 'build')})")
        rows = [("layer", "if only this one is not kept", "faster without it")]
        rows += [(layer.name, layer.without, str(layer.faster_without or "not timed")) for layer in report.layers]
        grid.show(rows, indent=2)
    else:
        print(f"{report.recipe}: the accuracy is within the bounds already")
    for note in report.notes:
        print(note)


def _written(arguments: argparse.Namespace, report: LayerReport) -> str:
    """Return the recipe's text with the layers kept, and at the top the figures that chose them."""
    from engine.drafts.edited import edited

    head = ["The layers that `recipe bisect` has found; if only one of them is not kept:"]
    for layer in report.layers:
        faster = "" if layer.faster_without is None else f"; {layer.faster_without} as fast"
        head.append(f"- {layer.name}: {layer.without}{faster}")
    [recipe], only, allow = arguments.recipes, arguments.only, arguments.allow_path
    return edited(recipe, report.point, {}, head, set=arguments.set, only=only, allow=allow)
