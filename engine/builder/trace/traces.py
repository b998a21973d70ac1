"""Traces of jobs: made when a job has run, and kept in the store."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING

from engine.builder.trace import coverage, places, reads
from engine.builder.trace.coverage import Rows, Trace
from engine.errors import StepError
from engine.facts import Known
from engine.key import Key
from engine.store.record import Record
from engine.system import regular

if TYPE_CHECKING:
    from engine.builder.job import Job
    from engine.builder.lookup import Lookup

_FACT = "facts."
"""The beginning of the names of a key's rows with facts."""


def of_run(lookup: Lookup, job: Job, key: Key, inputs: Mapping[str, Record], folder: Path) -> Trace:
    """Return what a job read, from the files that its worker left in `folder`.

    Raises StepError where the worker left none, or where they are damaged: nobody can say then what the job depends on.
    """
    try:
        files = (folder / reads.FILE_NAME, *folder.glob(f"{reads.FILE_NAME}.*"))
        every = [read for file in files for read in reads.decode(regular.read(file))]
    except (OSError, ValueError) as error:
        raise StepError(
            f"nobody can say what the job {job.name!r} has read",
            [f"the list of its worker cannot be read: {error}"],
            "build again; a step must not write into the folder around `out`",
        ) from error
    return coverage.examine(every, _rows(lookup, job, key, inputs))


@lru_cache(maxsize=16)
def encoded(trace: Trace) -> bytes:
    """Return a trace as the bytes that the store keeps. Many jobs of a step have the same trace."""
    return json.dumps({"version": trace.version, **trace.to_json()}, sort_keys=True).encode()


def of_record(lookup: Lookup, record: Record) -> Trace | None:
    """Return the trace of the run that made a record; None for a record without a readable trace."""
    content = lookup.store.trace(record)
    if content is None:
        return None
    raw = json.loads(content)
    try:
        return Trace.from_json(raw, raw.pop("version"))
    except ValueError:
        return None


def _rows(lookup: Lookup, job: Job, key: Key, inputs: Mapping[str, Record]) -> Rows:
    traits = job.traits
    return Rows(
        places.package_of_class(traits.kind),
        root=next(iter(places.roots_of(places.package_of_class(traits.work))), ""),
        inputs={name: str(lookup.store.artifact_path(record.artifact)) for name, record in inputs.items()},
        sources={
            name: tuple(map(os.path.abspath, lookup.source(source).files)) for name, source in traits.sources.items()
        },
        code=tuple(os.path.abspath(path) for path, _ in lookup.rows.code_read(job)),
        tools=traits.tools,
        installed=_installed,
        facts=(lambda: _facts(job, key)) if any(row.startswith(_FACT) for row in key) else dict,
    )


def _installed(tool: str) -> str:
    from engine.machine import tools

    return tools.build(tool).value


def _facts(job: Job, key: Key) -> dict[str, Known]:
    names = [row.removeprefix(_FACT) for row in key if row.startswith(_FACT)]
    from engine.builder import facts

    hardware = job.step.hardware()
    return {name: facts.of(name, hardware) for name in names}
