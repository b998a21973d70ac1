"""Compare the tensors of a built model with the original's; `recipe bisect` finds which layers to keep."""

from __future__ import annotations

import argparse
import json
from dataclasses import asdict
from typing import TYPE_CHECKING

from engine.commands import options
from engine.commands.amounts import positive
from engine.errors import Exit

if TYPE_CHECKING:
    from collections.abc import Sequence

    from engine.kit.accuracy.layers import ComparedLayer

_SHOWN = 12
"""The number of layers that are printed, those that lose most."""


def arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments of `recipe layers`."""
    options.add_recipes(parser, many=False)
    parser.add_argument(
        "--cases", metavar="N", type=positive, default=3, help="compare N cases of the validation (default: 3)"
    )
    options.add_json(parser)


def run(arguments: argparse.Namespace) -> Exit:
    """Print the layers that lose most. Raises UsageError without Polygraphy, and for a recipe that is not built."""
    from engine import api
    from engine.builder.summary import summarize
    from engine.tuning import suspects

    session = api.session(arguments.recipes, **options.reading(arguments))
    store = session.lookup.store
    results = []
    for variant in session.variants:
        summary = summarize(session.lookup, variant, newest=True)  # also of a build that failed in `validate`
        results.append((variant.name, *suspects.compare(summary, store, arguments.cases)))
    store.leave()
    if arguments.json:
        fields = [
            {"recipe": name, "on": place, "layers": [asdict(layer) for layer in every]}
            for name, place, every in results
        ]
        print(json.dumps(fields, indent=1))
        return Exit.OK
    for name, place, every in results:
        print(f"{name}: {len(every)} tensors of the built model, {place}, against the original on the CPU")
        _print(every)
    return Exit.OK


def _print(every: Sequence[ComparedLayer]) -> None:
    from engine.report import grid

    most = sorted(every, key=lambda layer: -layer.lost)[:_SHOWN]
    rows = [("lost here", "cosine", "max_abs", "type", "operator", "tensor")]
    rows += [
        (f"{layer.lost:.2g}", f"{layer.cosine:.6f}", f"{layer.max_abs:.2g}", layer.dtype, layer.operator, layer.tensor)
        for layer in most
    ]
    grid.show(rows, [grid.RIGHT] * 3, indent=2)
