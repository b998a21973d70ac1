"""Draw the jobs of recipes, and which of them are cached: as text, for Mermaid or for Graphviz."""

from __future__ import annotations

import argparse
import os
from pathlib import Path
from typing import TYPE_CHECKING

from engine.commands import options
from engine.errors import Exit, UsageError
from engine.text import suggestions

if TYPE_CHECKING:
    from engine.builder.job import Job

_FORMATS = ("text", "mermaid", "dot")


def arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments of `recipe graph`."""
    options.add_recipes(parser)
    parser.add_argument("--format", choices=_FORMATS, default="text", help="default: text")
    parser.add_argument(
        "--from", dest="start", metavar="STEP|FILE",
        help="only the jobs that can run again when this step makes another output, or when this file changes",
    )  # fmt: skip


def run(arguments: argparse.Namespace) -> Exit:
    """Print the graph, jobs of several variants once. Raises UsageError where `--from` is no step and no file read."""
    from engine import api
    from engine.builder import plan_graph
    from engine.report import graph

    session = api.session(arguments.recipes, **options.reading(arguments))
    findings = session.findings()
    session.lookup.store.leave()
    jobs = [finding.job for finding in findings]
    only = None if arguments.start is None else plan_graph.changed_by(jobs, _starting(jobs, arguments.start))
    for line in graph.FORMATS[arguments.format](graph.of(findings, only=only)):
        print(line)
    return Exit.OK


def _starting(jobs: list[Job], word: str) -> list[Job]:
    """Return the jobs of the step `word`, and those that read the source or the file `word`."""
    first = [job for job in jobs if word in (job.name, job.step_name) or _reads(job, word)]
    if not first:
        names = list(dict.fromkeys(job.name for job in jobs))
        what = f"no job here is called {word!r}, and none reads a file of that name"
        raise UsageError(what, [f"jobs: {', '.join(names)}"], suggestions.hint(word, names))
    return first


def _reads(job: Job, word: str) -> bool:
    """Say whether a job reads a source itself: by the source's name, or a file that is the source or lies in it."""
    scheme, file = "file:", Path(os.path.realpath(word))
    uris = [source.uri for source in job.traits.sources.values()]
    paths = [os.path.realpath(uri.removeprefix(scheme)) for uri in uris if uri.startswith(scheme)]
    return word in uris or any(file.is_relative_to(path) for path in paths)
