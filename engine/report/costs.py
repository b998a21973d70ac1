"""What a rebuild will cost, as text for people and as fields for programs."""

from __future__ import annotations

from typing import TYPE_CHECKING

from engine.text import lists, quantities

if TYPE_CHECKING:
    from engine.builder.why import Finding, Total


def of_job(finding: Finding) -> str:
    """Return the cost of a job that is not cached: "about 53 s", "about 12.0 min on Tesla T4", "cost unknown"."""
    if finding.cost is None:
        return "cost unknown"
    machine = f" on {finding.cost.machine}" if finding.cost.machine else ""
    return f"{quantities.about_duration(finding.cost.seconds)}{machine}"


def of_build(total: Total) -> str:
    """Return the cost of all jobs that are not cached, as a line."""
    unknown = f"{lists.counted(total.unknown, 'job')} of unknown cost" if total.unknown else ""
    waiting = f"{lists.counted(total.waiting, 'job')} for other hardware" if total.waiting else ""
    rest = [each for each in (unknown, waiting) if each]
    if rest and not total.seconds:
        return ", ".join(rest)
    elapsed = quantities.about_duration(total.elapsed).removeprefix("about ")
    text = f"{quantities.about_duration(total.seconds)} of work: {elapsed} with -j {total.parallel}"
    return ", ".join([text, *(f"without {each}" for each in rest)])


def fields_of_job(finding: Finding) -> dict[str, object] | None:
    """Return the cost of a job as JSON values; None for a cached job and for an unknown cost."""
    return None if finding.cost is None else {"seconds": finding.cost.seconds, "machine": finding.cost.machine or None}


def fields_of_build(total: Total | None) -> dict[str, object] | None:
    """Return the cost of a build as JSON values; None if all jobs are cached."""
    if total is None:
        return None
    return {
        "seconds": round(total.seconds, 3),
        "elapsed": round(total.elapsed, 3),
        "parallel": total.parallel,
        "unknown_jobs": total.unknown,
        "waiting_jobs": total.waiting,
    }
