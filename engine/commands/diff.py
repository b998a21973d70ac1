"""Compare two recipes, variants or commits, or a recipe with its last build: jobs, sizes, accuracy, latencies."""

from __future__ import annotations

import argparse
import json

from engine.commands import options
from engine.errors import Exit


def arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments of `recipe diff`."""
    side_form = "[REVISION:]RECIPE[::VARIANT], such as main:recipes/minilm.yaml"
    parser.add_argument("old", metavar="A", help=side_form)
    parser.add_argument(
        "new", metavar="B", nargs="?", help="the same; without B, A's last build is compared with A now"
    )
    options.add_reading(parser)
    form = parser.add_mutually_exclusive_group()
    options.add_json(form)
    form.add_argument("--markdown", action="store_true", help="short, for a pull request")
    parser.epilog = (
        "a latency counts as different only if the 95 %% confidence intervals of both measurements have no value in "
        "common. Nothing of a commit is executed, and the work tree stays as it is."
    )


def run(arguments: argparse.Namespace) -> Exit:
    """Print what differs, and what a build of the second side would run."""
    from engine import api
    from engine.report import difference

    comparison = api.diff(arguments.old, arguments.new, **options.reading(arguments))
    if arguments.json:
        print(json.dumps(difference.as_json(comparison), ensure_ascii=False, indent=1))
        return Exit.OK
    for line in difference.as_markdown(comparison) if arguments.markdown else difference.as_text(comparison):
        print(line)
    return Exit.OK
