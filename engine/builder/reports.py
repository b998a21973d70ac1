"""Read the report in a record: as the report type of the step, or as JSON for a step without a type."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, cast

from engine.store.record import Record

if TYPE_CHECKING:
    from engine.reporting import TypedReport
    from engine.step import Report, Step


def version_of(step: type[Step]) -> int:
    """Return the version number of the form of a step's reports."""
    return 1 if step.report is None else step.report.version


def read(step: type[Step], record: Record) -> TypedReport | Report:
    """Return a record's report, as the type that the step names; without a type, as the JSON that was filed.

    Raises ValueError for a report of another type, or of a version that cannot be migrated.
    """
    if step.report is None:
        return dict(record.report)
    return step.report.from_json(record.report, record.report_version)


def current(step: type[Step], record: Record) -> Record | None:
    """Return the record with its report migrated to the present version; None for an unreadable report."""
    try:
        report = read(step, record)
    except ValueError:
        return None
    if record.report_version == version_of(step):
        return record
    return replace(record, report=cast("TypedReport", report).to_json(), report_version=version_of(step))
