"""What jobs read, by the rows of their keys that cover it: the text of `recipe why --read`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from json import dumps

from engine.builder.lookup import Lookup
from engine.builder.trace import gaps
from engine.builder.trace.coverage import Trace, TraceGroup, trace_of_record
from engine.builder.why import Finding

_ORDER = ("inputs", "code", "tools", "facts", "env", "allowed")
"""The order in which the kinds of rows are printed."""


def show(lookup: Lookup, findings: Sequence[Finding], *, json: bool) -> None:
    """Print what each job read in the run that made its present result, as text or as JSON."""
    pairs = [(each, None if each.record is None else trace_of_record(lookup, each.record)) for each in findings]
    if json:
        print(dumps([_fields(finding, trace) for finding, trace in pairs], ensure_ascii=False, indent=1))
        return
    for finding, trace in pairs:
        print(f"{finding.job.recipe} {finding.job.name}:")
        for line in [f"  {_nothing(finding)}"] if trace is None else lines(trace):
            print(line)


def lines(trace: Trace) -> Iterator[str]:
    """Yield the lines about a job's trace: a line for each row of the key, then what no row covers."""
    for group in sorted(trace.groups, key=_rank):
        reason = f"  ({group.reason})" if group.reason else ""
        more = f" and {group.more} more" if group.more else ""
        yield f"  {group.cover}: {', '.join(group.names)}{more}{reason}"
    if not trace.gaps:
        yield "  NOT covered: nothing"
    for gap in trace.gaps:
        yield f"  NOT covered: {gaps.sentence(gap)}"
    if trace.more_gaps:
        yield f"  NOT covered: {trace.more_gaps} more"


def _rank(group: TraceGroup) -> tuple[int, str]:
    kind = group.cover.partition(".")[0].partition(" ")[0]
    return (_ORDER.index(kind), group.cover)


def _nothing(finding: Finding) -> str:
    if finding.record is None:
        return f"{finding.state}: there is no result yet; `recipe why` says why"
    return "the job ran in a version that kept no trace; `recipe build --force STEP` runs it again"


def _fields(finding: Finding, trace: Trace | None) -> dict[str, object]:
    return {
        "recipe": finding.job.recipe,
        "job": finding.job.name,
        "state": finding.state,
        "read": None if trace is None else trace.to_json(),
    }
