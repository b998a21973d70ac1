"""Draw the jobs of recipes, and which of them are cached: as text, for Mermaid or for Graphviz."""

from __future__ import annotations

import argparse

from engine.commands import options
from engine.errors import Exit

_FORMATS = ("text", "mermaid", "dot")


def arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments of `recipe graph`."""
    options.add_recipes(parser)
    parser.add_argument("--format", choices=_FORMATS, default="text", help="default: text")


def run(arguments: argparse.Namespace) -> Exit:
    """Print the graph of all jobs; jobs that several variants share are drawn once."""
    from engine import api
    from engine.report import graph

    session = api.session(arguments.recipes, **options.reading(arguments))
    findings = session.findings()
    session.lookup.store.leave()
    for line in graph.FORMATS[arguments.format](graph.of(findings)):
        print(line)
    return Exit.OK
