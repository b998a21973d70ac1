"""The reports in a lock: measured figures that later jobs depend on, and that no build with the lock measures again."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from engine.builder.job import Job
from engine.errors import LockError
from engine.key import Key, digest_of, text_of
from engine.lockfile.content import LockedOutput
from engine.step import write_report
from engine.store import output
from engine.store.store import Store

_LOG = b"the figures are those of the lock; nothing was measured\n"


def rows_of(job: Job, report: Mapping[str, object]) -> dict[str, str]:
    """Return the part of a job's report that a lock has, as rows: a row for each field or entry of a mapping.

    An empty mapping has one row.
    """
    rows: dict[str, str] = {}
    for name in job.step.in_lock:
        value = report.get(name)
        if isinstance(value, Mapping) and value:
            rows |= {f"{name}.{entry}": text_of(each) for entry, each in value.items()}
        elif value is not None:
            rows[name] = text_of(value)
    return rows


def report_of(rows: Mapping[str, str]) -> dict[str, object]:
    """Return the report that rows of a lock describe: the opposite of `rows_of`."""
    report: dict[str, Any] = {}
    for row, text in rows.items():
        name, _, entry = row.partition(".")
        if entry:
            report.setdefault(name, {})[entry] = _value(text)
        else:
            report[name] = _value(text)
    return report


def is_measured(job: Job) -> bool:
    """Return whether a build with a lock takes the job's output from the lock, because another run would differ."""
    return bool(job.step.in_lock) and not job.traits.reproducible


def file(store: Store, machine: Mapping[str, str], job: Job, key: Key, locked: LockedOutput) -> None:
    """Write the record of a measured job with the locked report into the store, unless the store has it.

    Nothing is written for any other job, and where the lock has no report. `key` is the locked key, and `machine` are
    the facts about this machine. Raises LockError where the report in the lock is not the one that the artifact in the
    lock was made from.
    """
    if not is_measured(job) or not locked.report:
        return
    record = store.find(key)
    if record is not None and record.artifact == locked.artifact:
        return
    report = report_of(locked.report)
    with store.presence.workplace() as folder:
        write_report(folder / "out", report)
        files = output.take(folder / "out")
        if output.tree(files) != locked.artifact:
            raise LockError(
                f"the figures of {job.name!r} in the lock of {job.recipe} were edited",
                [f"artifact of {job.name}: locked {locked.artifact}, from the locked figures {output.tree(files)}"],
                "take back the edit, or measure again: `recipe build`, then `recipe lock`",
            )
        step = job.traits.kind
        store.commit(
            key,
            folder / "out",
            files,
            report=report,
            report_version=job.traits.report_version,
            seconds=0.0,
            peak_bytes=0,
            machine=machine,
            log=_LOG,
            job=job.name,
            step=step,
            bound=output.binding(step=step, key=digest_of(key), tree=output.tree(files), report=report),
        )


def _value(text: str) -> object:
    try:
        return json.loads(text)
    except ValueError:
        return text
