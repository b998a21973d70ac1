"""Reports at the border of a record: typed where the step names its type, JSON inside; read in this one place."""

from __future__ import annotations

from dataclasses import replace
from typing import cast

from engine.reporting import TypedReport
from engine.step import Report, Step
from engine.store.store import Record


def version_of(step: type[Step]) -> int:
    """Return the version that a step's reports are filed under."""
    return 1 if step.report is None else step.report.version


def read(step: type[Step], record: Record) -> TypedReport | Report:
    """Return a record's report: of the type that the step names, else as it was filed.

    Raises ValueError for a report of another type or version that cannot be read as this one.
    """
    if step.report is None:
        return dict(record.report)
    return step.report.from_json(record.report, record.report_version)


def current(step: type[Step], record: Record) -> Record | None:
    """Return the record with its report as this version writes it; None where it does not read."""
    try:
        report = read(step, record)
    except ValueError:
        return None
    if record.report_version == version_of(step):
        return record
    return replace(record, report=cast("TypedReport", report).to_json(), report_version=version_of(step))
