"""Traces of jobs: made when a job has run, and kept in the store."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

from engine.builder import code, facts
from engine.builder.jobs import Job
from engine.builder.lookup import Lookup
from engine.builder.trace import coverage, reads
from engine.builder.trace.coverage import Rows
from engine.builder.trace.reads import Read
from engine.builder.trace.report import Trace
from engine.machine import tools
from engine.store.store import Record


def of_run(lookup: Lookup, job: Job, inputs: Mapping[str, Record], folder: Path) -> Trace | None:
    """Return what a job read, from the files that its worker left in `folder`; None where the worker left none."""
    every: list[Read] = []
    try:
        every += reads.decode((folder / reads.FILE_NAME).read_bytes())
        for child in folder.glob(f"{reads.FILE_NAME}.*"):
            every += reads.decode(child.read_bytes())
    except (OSError, ValueError):
        return None
    return coverage.examine(every, _rows(lookup, job, inputs))


def encoded(trace: Trace) -> bytes:
    """Return a trace as the bytes that the store keeps."""
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


def _rows(lookup: Lookup, job: Job, inputs: Mapping[str, Record]) -> Rows:
    step = job.step
    return Rows(
        module=type(step).__module__,
        inputs={name: str(lookup.store.artifact_path(record.artifact)) for name, record in inputs.items()},
        sources={name: coverage.files_of(lookup.source(source).files) for name, source in step.sources().items()},
        code=frozenset(coverage.files_of(code.of_step(step).files)),
        tools={tool: tools.build(tool).value for tool in step.tools_used()},
        facts={name: facts.of(name, step.hardware()) for name in step.facts_used()},
        variables=frozenset(step.variables),
    )
