"""Write one HTML page about recipes: plans, latencies, accuracy, precision, history; it needs no network."""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path

from engine.commands import options
from engine.errors import Exit, UsageError
from engine.system import folders
from engine.text import distribution

_DEFAULT = Path("report.html")


def arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments of `recipe report`."""
    options.add_recipes(parser)
    parser.add_argument("-o", "--output", metavar="FILE", type=Path,
                         help=f"the page, which replaces an earlier one; - for standard output (default: {_DEFAULT}, "
                              "which is not replaced)")  # fmt: skip
    parser.add_argument("--open", action="store_true", help="open the page in a browser")


def run(arguments: argparse.Namespace) -> Exit:
    """Write the page; an earlier one is replaced in one step if `-o` names it. Raises UsageError if it does not."""
    if arguments.open and str(arguments.output) == "-":
        raise UsageError("--open needs a file, and -o - prints the page", hint="leave -o out, or name a file with it")
    from engine import api
    from engine.report import overview
    from engine.report.page import page as pages

    if arguments.output is None and os.path.lexists(_DEFAULT):
        hint = f"-o {_DEFAULT} replaces it, -o FILE writes another one"
        raise UsageError(f"{_DEFAULT} exists already, and was left as it is", hint=hint)
    output: Path = arguments.output or _DEFAULT
    folders.refuse_unwritable(output.parent, f"{output} cannot be written", "name another file with -o")
    session = api.session(arguments.recipes, **options.reading(arguments))
    summaries, findings = session.summaries(), session.findings()
    overviews = list(overview.of(session.lookup, summaries, findings))
    session.lookup.store.leave()
    page = pages.html(summaries, findings, overviews, distribution.running())
    if str(output) == "-":
        print(page, end="")
        return Exit.OK
    pages.write(page, output)
    print(output)
    if arguments.open:
        import webbrowser

        if not webbrowser.open(output.absolute().as_uri()):
            sys.stderr.write(f"note: no browser was found; open {output.absolute()} in one\n")
    return Exit.OK
