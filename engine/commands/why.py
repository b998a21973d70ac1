"""Say for each job whether the job is cached, or which rows of its key changed, and what a rebuild will cost."""

from __future__ import annotations

import argparse
import json
import re
from collections.abc import Iterator, Sequence
from itertools import groupby
from typing import TYPE_CHECKING

from engine.commands import options
from engine.errors import Exit, UsageError
from engine.recipe.project import jobs_of
from engine.text import suggestions

if TYPE_CHECKING:
    from engine.builder.lookup import Lookup
    from engine.builder.trace.coverage import Trace
    from engine.builder.why import Finding
    from engine.key import Change

_KINDS = ("inputs", "code", "tools", "facts", "env", "allowed")
"""The order in which the kinds of rows are printed."""


def arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments of `recipe why`."""
    options.add_recipes(parser, many=False)
    options.add_step(parser)
    parser.add_argument("--read", action="store_true", help="list what each job read, by the row that covers it")
    options.add_refresh(parser)
    options.add_json(parser)


def run(arguments: argparse.Namespace) -> Exit:
    """Print each job's state and what changed in its key. Raises UsageError for a job that the plan lacks."""
    from engine import api
    from engine.builder.executors.executor import default_slots
    from engine.builder.why import total
    from engine.report import costs

    session = api.session(arguments.recipes, **options.reading(arguments))
    every = findings = session.findings()
    session.lookup.store.leave()
    whole = total(findings, jobs_of(str(arguments.recipes[0])) or default_slots())
    if arguments.step is not None:
        jobs = tuple(dict.fromkeys(finding.job.name for finding in every))
        findings = [finding for finding in every if arguments.step in (finding.job.name, finding.job.step_name)]
        if not findings:
            what = f"this recipe has no job {arguments.step!r}"
            raise UsageError(what, [f"jobs: {', '.join(jobs)}"], suggestions.hint(arguments.step, jobs))
    if arguments.read:
        _show_reads(session.lookup, findings, as_json=arguments.json)
    elif arguments.json:
        print(json.dumps([_fields(finding) for finding in findings], ensure_ascii=False, indent=1))
    else:
        for line in _lines(_with_causes(findings, every)):
            print(line)
        if whole is not None and arguments.step is None:
            print(costs.of_build(whole))
    return Exit.OK


def _with_causes(findings: list[Finding], every: list[Finding]) -> list[Finding]:
    """Return the findings, each after those of the jobs before it that a build would run first."""
    unknown = [finding.job.name for finding in findings if finding.state == "unknown"]
    if not unknown or findings is every:
        return findings
    from engine.builder import plan_graph

    chosen = {finding.job.name for finding in findings}
    needed = plan_graph.up_to([finding.job for finding in every], unknown)
    names = {(job.recipe, job.name) for job in needed}
    return [
        each
        for each in every
        if each.job.name in chosen or (each.state in ("new", "stale") and (each.job.recipe, each.job.name) in names)
    ]


def _fields(finding: Finding) -> dict[str, object]:
    from engine.report import costs, table_lines

    fields: dict[str, object] = {
        "recipe": finding.job.recipe,
        "job": finding.job.name,
        "state": finding.state,
        "changes": [
            {"row": each.row, "old": each.old, "new": each.new}
            | ({"reason": reason} if (reason := finding.reasons.get(each.row)) else {})
            for each in finding.changes
        ],
        "cost": costs.fields_of_job(finding),
    }
    if choice := table_lines.choice_of_job(finding):
        fields["choice"] = choice
    if finding.compared_with:
        fields["compared_with"] = finding.compared_with
    if finding.error is not None:
        fields["error"] = finding.error.fields()
    return fields


def _lines(findings: list[Finding]) -> list[str]:
    from engine.report import grid

    lines: list[str] = []
    for recipe, group in groupby(findings, key=lambda finding: finding.job.recipe):
        own = list(group)
        rows = [row for finding in own for row in _rows(finding)]
        other = next(
            (f" compared with the last build of {each.compared_with}" for each in own if each.compared_with), ""
        )
        lines += [f"{recipe}:{other}", *grid.lines(rows, indent=2)]
    return lines


def _rows(finding: Finding) -> Iterator[tuple[str, str]]:
    """Yield the rows of the table for a job: state and name, then each change of the key and each line of the error."""
    yield finding.state, f"{finding.job.name}{_remark(finding)}"
    from engine.report import table_lines

    error = str(finding.error).splitlines() if finding.error is not None else []
    changed = (_change(change, finding) for change in finding.changes)
    for detail in (*table_lines.choice_of_job(finding), *changed, *error):
        yield "", f"  {detail}"


def _remark(finding: Finding) -> str:
    from engine.report import costs

    if finding.record is not None:
        machine = finding.record.machine
        return f"  (made on {machine.get('cpu.model', 'an unknown CPU')}, GPU: {machine.get('gpu.name', 'none')})"
    remarks = [costs.of_job(finding)] if finding.error is None else []
    if finding.state == "unknown" and finding.error is None:
        remarks.insert(0, f"known once {', '.join(dict.fromkeys(finding.job.needs.values()))} is built")
    if finding.state == "new":
        remarks.insert(0, "never built")
    return f"  ({'; '.join(remarks)})" if remarks else ""


def _change(change: Change, finding: Finding) -> str:
    kind, _, name = change.row.partition(".")
    origin = ""
    if kind == "inputs" and name in finding.job.needs:
        origin = f"  (from {finding.job.needs[name]})"
    elif kind == "inputs" and name in finding.job.traits.sources:
        origin = f"  ({finding.job.traits.sources[name].uri})"
    elif change.row in finding.reasons:
        origin = f"  ({finding.reasons[change.row]})"
    unknown = "(not known yet)" if name in finding.job.needs else "(none)"
    return f"{change.row}: {change.old or '(none)'} -> {change.new or unknown}{origin}"


def _show_reads(lookup: Lookup, findings: Sequence[Finding], *, as_json: bool) -> None:
    """Print what each job read in the run that made its present result, as text or as JSON."""
    from engine.builder.trace.coverage import trace_of_record

    pairs = [(each, None if each.record is None else trace_of_record(lookup, each.record)) for each in findings]
    if as_json:
        fields = [
            {"recipe": each.job.recipe, "job": each.job.name, "state": each.state, "read": trace and trace.to_json()}
            for each, trace in pairs
        ]
        print(json.dumps(fields, ensure_ascii=False, indent=1))
        return
    for finding, trace in pairs:
        print(f"{finding.job.recipe} {finding.job.name}:")
        if trace is not None:
            print("\n".join(_lines_of_trace(trace)))
        elif finding.record is None:
            print(f"  {finding.state}: there is no result yet; `recipe why` says why")
        else:
            print("  the job ran in a version that kept no trace; `recipe build --force STEP` runs it again")


def _lines_of_trace(trace: Trace) -> Iterator[str]:
    """Yield the lines about a job's trace: a line for each row of the key, then what no row covers."""
    from engine.builder.trace import gaps

    for group in sorted(trace.groups, key=lambda each: (_KINDS.index(re.split("[. ]", each.cover)[0]), each.cover)):
        reason = f"  ({group.reason})" if group.reason else ""
        more = f" and {group.more} more" if group.more else ""
        yield f"  {group.cover}: {', '.join(group.names)}{more}{reason}"
    if not trace.gaps:
        yield "  NOT covered: nothing"
    for gap in trace.gaps:
        yield f"  NOT covered: {gaps.sentence(gap)}"
    if trace.more_gaps:
        yield f"  NOT covered: {trace.more_gaps} more"
