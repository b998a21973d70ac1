"""Modes of `recipe build`: `--dry-run` says what a build costs, `--waiting` what waits; `--watch` builds again."""

from __future__ import annotations

import argparse
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

from engine import snapshot
from engine.builder.waiting import MachineNeeded, WaitingJob
from engine.builder.why import total, upgrade
from engine.errors import Exit, LockError
from engine.recipe.project import project_of
from engine.report import costs, grid
from engine.system import folders, regular, streams, watched
from engine.text import lists, quantities

if TYPE_CHECKING:
    from engine.api import Session


_MINUTE = 60.0
_WORDS = {"cached": "cached", "stale": "would build", "new": "would build", "unknown": "may build"}
_SECONDS = 0.5
"""The time between two looks at the files."""
_PATIENCE = 2.0
"""The seconds after which a build that has not ended by Ctrl-C is interrupted: the terminal's signal reaches both."""
_OPTION = "--watch"
_RECIPES = (".yaml", ".yml")
_MOST = 20_000
"""The largest number of a project's files that are watched after a build that failed."""


def show_costs(session: Session, arguments: argparse.Namespace) -> Exit:
    """Print what a build would run and cost. Raises the errors of wrong recipes, and of a lock that forbids a job."""
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
        costs_of_jobs = ("" if each.state == "cached" else costs.of_job(each) for each in findings)
        rows = [(_WORDS[each.state], each.job.recipe, each.job.name) for each in findings]
        grid.show([(*row, cost) for row, cost in zip(rows, costs_of_jobs, strict=True)])
        if whole is not None:
            print(costs.of_build(whole))
        if upgraded is not None:
            print(upgraded)
    session.refusals.refuse(len(session.selection.paths))
    for finding in findings:
        if isinstance(finding.error, LockError):
            raise finding.error
    return Exit.OK


def show_waiting(session: Session, arguments: argparse.Namespace) -> Exit:
    """Print what waits for other hardware. Raises the errors of wrong recipes."""
    waiting = session.waiting()
    streams.write_last(f"{_ci_matrix(waiting)}\n" if arguments.json else _waiting_text(waiting))
    session.refusals.refuse(len(session.selection.paths))
    return Exit.OK


def _ci_matrix(waiting: Sequence[MachineNeeded]) -> str:
    """Return the matrix as one line of JSON, which GitHub Actions takes as `matrix: ${{ fromJSON(...) }}`."""
    return json.dumps({"include": [_entry(each) for each in waiting]}, ensure_ascii=False)


def _waiting_text(waiting: Sequence[MachineNeeded]) -> str:
    """Return for each kind of machine its jobs, what they cost, and the command to run there."""
    if not waiting:
        return "nothing waits for other hardware\n"
    return "".join(f"{each}\n" for entry in waiting for each in _lines_of_machine(entry))


def _entry(each: MachineNeeded) -> dict[str, object]:
    hardware = each.hardware
    first = hardware.devices[0]
    return {
        "device": first.name,
        "sm": first.sm,
        "devices": [{"device": device.name, "sm": device.sm} for device in hardware.devices],
        "tool": hardware.tool,
        "version": hardware.version,
        "requirement": each.requirement,
        "minutes": _minutes(each.seconds),
        "command": each.command,
        "jobs": [_job(job) for job in each.jobs],
    }


def _job(job: WaitingJob) -> dict[str, object]:
    return {
        "recipe": str(job.path),
        "variant": job.finding.job.recipe,
        "step": job.finding.job.name,
        "state": _WORDS[job.finding.state],
        "minutes": _minutes(job.seconds),
    }


def _minutes(seconds: float | None) -> float | None:
    return None if seconds is None else round(seconds / _MINUTE, 4)


def _lines_of_machine(entry: MachineNeeded) -> list[str]:
    cost = "cost unknown" if entry.seconds is None else quantities.about_duration(entry.seconds)
    jobs = [
        (_WORDS[job.finding.state], job.finding.job.recipe, job.finding.job.name, costs.of_job(job.finding))
        for job in entry.jobs
    ]
    return [
        f"{entry.hardware}: {lists.counted(len(entry.jobs), 'job')}, {cost}",
        *grid.lines(jobs, indent=2),
        f"  there: {entry.command}",
    ]


def build_again(words: Sequence[str], recipe: Path) -> NoReturn:
    """Build again after each change of the snapshot's files, or after a failure of the project's, until Ctrl-C."""
    own = [word for word in words if word != _OPTION]
    root = str(project_of(recipe))
    while True:
        before = _stat_rows(root)
        code = _build(own)
        sys.stderr.write(f"watching: {_change(own, root, before, follows=code in (Exit.OK, Exit.WAITING))} changed\n")


def _build(words: Sequence[str]) -> int:
    """Run a build and return its exit code. A build that is interrupted ends before KeyboardInterrupt is raised."""
    child = subprocess.Popen([sys.executable, "-m", "recipe_build", "build", *words])  # noqa: S603 - this program
    try:
        code = child.wait()
    except KeyboardInterrupt:
        try:
            child.wait(_PATIENCE)
        except subprocess.TimeoutExpired:
            child.send_signal(signal.SIGINT)
            child.wait()
        raise
    if code == 128 + signal.SIGINT:
        raise KeyboardInterrupt
    return code


def _change(words: Sequence[str], root: str, before: dict[str, object], *, follows: bool) -> str:
    """Wait until a file changes, and return its path. With `follows`, the build's snapshot says which files count."""
    changes = snapshot.compare(words) if follows else None
    while changes is not None and not changes.names:
        time.sleep(_SECONDS)
        changes = snapshot.compare(words)
        if changes is None:
            return "the environment"
    while changes is None:
        now = _stat_rows(root)
        different = [name for name in before | now if before.get(name) != now.get(name)]
        if different:
            return os.path.relpath(different[0])
        time.sleep(_SECONDS)
    return os.path.relpath(changes.names[0])


def _stat_rows(root: str) -> dict[str, object]:
    """Return the stat row of each file of a project that is YAML or that one may name: a log of this is no change."""
    names = [os.path.relpath(path, root) for path, _ in zip(folders.files_beside(root), range(_MOST), strict=False)]
    texts = [_text(os.path.join(root, name)) for name in names if name.endswith(_RECIPES)]
    rows: dict[str, object] = {}
    for name in names:
        if name.endswith(_RECIPES) or any(part in text for text in texts for part in name.split(os.sep)):
            rows[os.path.join(root, name)] = watched.row_of(os.path.join(root, name))
    return rows


def _text(path: str) -> str:
    try:
        return regular.read_text(path, errors="replace")
    except OSError:
        return ""
