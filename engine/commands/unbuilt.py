"""`recipe build` that builds nothing: `--dry-run` says what a build costs, `--waiting` what needs other machines."""

from __future__ import annotations

import argparse
import json
from typing import TYPE_CHECKING

from engine.builder.why import total, upgrade
from engine.errors import Exit, LockError
from engine.report import costs, grid, matrix
from engine.system import streams

if TYPE_CHECKING:
    from engine.api import Session
    from engine.builder.why import Finding

_WORDS = {"cached": "cached", "stale": "would build", "new": "would build", "unknown": "may build"}


def show_costs(session: Session, arguments: argparse.Namespace) -> Exit:
    """Print what a build would run, and what that costs.

    Raises the errors of wrong recipes, and that of a lock which forbids a job.
    """
    findings = session.findings()
    upgraded = upgrade(findings)
    whole = total(findings, arguments.jobs or session.parallel)
    if arguments.json:
        jobs = [
            {
                "recipe": finding.job.recipe,
                "job": finding.job.name,
                "state": _WORDS[finding.state],
                "cost": costs.fields_of_job(finding),
            }
            for finding in findings
        ]
        whole_fields = {"cost": costs.fields_of_build(whole), "upgrade": upgraded and upgraded.fields()}
        print(json.dumps({"jobs": jobs, **whole_fields}, ensure_ascii=False, indent=1))
    else:
        grid.show([(_WORDS[each.state], each.job.recipe, each.job.name, _cost(each)) for each in findings])
        if whole is not None:
            print(costs.of_build(whole))
        if upgraded is not None:
            print(upgraded)
    session.refusals.refuse(len(session.selection.paths))
    for finding in findings:
        if isinstance(finding.error, LockError):
            raise finding.error
    return Exit.OK


def _cost(finding: Finding) -> str:
    return "" if finding.state == "cached" else costs.of_job(finding)


def show_waiting(session: Session, arguments: argparse.Namespace) -> Exit:
    """Print what waits for other hardware. Raises the errors of wrong recipes."""
    waiting = session.waiting()
    streams.write_last(f"{matrix.line(waiting)}\n" if arguments.json else matrix.text(waiting))
    session.refusals.refuse(len(session.selection.paths))
    return Exit.OK
