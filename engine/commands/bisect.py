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
    parser.add_argument("--write", metavar="FILE", type=Path, help="write the recipe that keeps them, as one variant")
    options.add_json(parser)


def run(arguments: argparse.Namespace) -> Exit:
    """Build until the layers are known, and print them. Raises JudgementError where no set of layers helps."""
    from engine.drafts import edited
    from engine.tuning.layer_search import LayerSearch
    from engine.tuning.trials import TrialBuilder

    [recipe], allow = arguments.recipes, arguments.allow_path
    if arguments.write is not None:
        edited.refuse_place(arguments.write, recipe, allow)
    say = partial(print, file=sys.stderr, flush=True)
    report = LayerSearch(TrialBuilder(recipe, lambda _: None, **options.reading(arguments)), say).run()
    print(json.dumps(asdict(report), indent=1)) if arguments.json else _show(report)
    if arguments.write is not None and report.layers:
        text = edited.edited(recipe, report.point, _head(report), set=arguments.set, only=arguments.only, allow=allow)
        edited.write(text, arguments.write, recipe, allow)
    if arguments.write is not None:
        say(f"written: {arguments.write}" if report.layers else "nothing to write: no further layer needs to be kept")
    return Exit.OK


def _show(report: LayerReport) -> None:
    from engine.report import grid
    from engine.text import lists

    if report.layers:
        kept = lists.counted(len(report.layers), "more layer" if report.kept_already else "layer")
        builds = lists.counted(report.builds, "build")
        print(f"{report.recipe} in {report.precision}: {kept} must stay in {report.keeps_in} ({builds})")
        rows = [("layer", "if only this one is not kept", "faster without it")]
        rows += [(layer.name, layer.without, str(layer.faster_without or "not timed")) for layer in report.layers]
        grid.show(rows, indent=2)
    else:
        print(f"{report.recipe}: the accuracy is within the bounds already")
    for note in report.notes:
        print(note)


def _head(report: LayerReport) -> list[str]:
    """Return the figures that chose the layers, for the top of the recipe."""
    title = "The layers that `recipe bisect` has found; if only one of them is not kept:"
    return [
        title,
        *(f"- {each.name}: {each.without}; speed {each.faster_without or 'unknown'}" for each in report.layers),
    ]
