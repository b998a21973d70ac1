"""The choice of a runtime, as lines for people: which runtime was chosen, by which figures, and why not the others."""

from __future__ import annotations

from engine.builder.job import read_report
from engine.builder.summary import Summary
from engine.builder.why import Finding
from engine.kit.choice.report import ChoiceReport
from engine.step import Section


def lines(summary: Summary) -> list[str]:
    """Return the line about the chosen runtime, and the lines about the other candidates; [] without a choice."""
    report = summary.report(Section.RUNTIME, ChoiceReport)
    if report is None:
        return []
    runtime = summary.variant.loaded.recipe.target.runtime
    return [report.headline(runtime), *(f"  {line}" for line in report.lines())]


def of_job(finding: Finding) -> list[str]:
    """Return the choice that the record of a cached job holds; [] for any other job."""
    step, record = finding.job.step, finding.record
    if record is None or step.section is not Section.RUNTIME:
        return []
    report = read_report(type(step), record)
    return [report.headline("chosen"), *report.lines()] if isinstance(report, ChoiceReport) else []
