"""Show what the builds of a recipe did over time: which jobs ran and why, sizes, accuracy, latencies."""

from __future__ import annotations

import argparse
import json

from engine.commands import amounts, options
from engine.errors import Exit

_LIMIT = 10


def arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments of `recipe history`."""
    options.add_recipes(parser)
    parser.add_argument("--limit", metavar="N", type=amounts.positive, default=_LIMIT,
                        help=f"the most builds to show of a variant (default: {_LIMIT}); --json has all")  # fmt: skip
    options.add_json(parser)


def run(arguments: argparse.Namespace) -> Exit:
    """Print the builds of each variant, the newest first; `--json` has them the oldest first."""
    from engine import api
    from engine.report import history as report

    histories = api.history(arguments.recipes, **options.reading(arguments))
    if arguments.json:
        fields = [{"recipe": name, "builds": report.as_json(builds)} for name, builds in histories.items()]
        print(json.dumps(fields, ensure_ascii=False, indent=1))
        return Exit.OK
    for name, builds in histories.items():
        print(f"{name}:" if builds else f"{name}: no build is noted")
        for line in report.lines(builds, limit=arguments.limit) if builds else ():
            print(f"  {line}")
    return Exit.OK
