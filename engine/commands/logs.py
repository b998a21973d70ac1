"""Print the log of a job's last run, also of a run that failed."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from engine.commands import options
from engine.errors import Exit, UsageError
from engine.system import regular
from engine.text import suggestions


def arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments of `recipe logs`."""
    options.add_recipes(parser, many=False)
    options.add_step(parser)


def run(arguments: argparse.Namespace) -> Exit:
    """Print the logs of the jobs, under headings if there are several. Raises UsageError where there is none."""
    from engine.builder.job import step_of
    from engine.builder.planning import variants
    from engine.builder.selection import select
    from engine.store.heads import Heads
    from engine.store.opening import open_store

    selection = select(arguments.recipes, **options.reading(arguments))
    store = open_store(selection.store)
    heads = Heads(store.notes)
    titled: list[tuple[str, Path]] = []
    planned = variants(selection)
    names = tuple(dict.fromkeys(job.name for variant in planned for job in variant.jobs))
    if arguments.step is not None and arguments.step not in {*names, *map(step_of, names)}:
        what = f"this recipe has no job {arguments.step!r}"
        raise UsageError(what, [f"jobs: {', '.join(names)}"], suggestions.hint(arguments.step, names))
    for variant in planned:
        notes = heads.of(variant.subject).jobs
        for job in variant.jobs:
            if job.name not in notes:
                continue
            run = notes[job.name].run
            logs = (store.log_path(run, failed=True), store.log_path(run))
            log = next((path for path in logs if path.is_file()), None)
            if arguments.step in (None, job.name, job.step_name) and log is not None:
                titled.append((f"{variant.name} {job.name}", log))
    if not titled:
        of_step = f"of {arguments.step!r} " if arguments.step else ""
        raise UsageError(f"there is no log {of_step}yet", hint="build the recipe first")
    for title, log in titled:
        if len(titled) > 1:
            print(f"== {title}")
        sys.stdout.write(regular.read_text(log, errors="replace"))
    return Exit.OK
