"""The worker: a process that runs one job, with a log, and answers with the report or the error of the step."""

from __future__ import annotations

import contextlib
import errno
import importlib
import json
import os
import sys
import traceback
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NoReturn

from engine.builder.trace import hook
from engine.builder.worker_task import MissingPackageError, WorkerAnswer, WorkerTask
from engine.errors import StepError, UserError, causes
from engine.system import limits
from engine.text import canonical, reasons

_ROOM = 1 << 16
"""A disk that has fewer free bytes than this number counts as full."""


def serve(task: WorkerTask, pid: int) -> WorkerAnswer | None:
    """Run a task in this process and return the answer; None in a copy of the process that the step has forked.

    `pid` is the process id of the worker. While the task runs, the standard output and standard error of Python and
    native code go to the task's log.
    """
    report: Mapping[str, object] | None = None
    error: UserError | None = None
    try:
        _speak_into(task.log)
        with hook.recording(task.step, os.path.dirname(task.log), task.inputs.values()):
            report = perform(task)
    except UserError as known:
        error = known
        with contextlib.suppress(OSError):  # the log may be on a full disk
            print(f"{known}")  # noqa: T201 - the log is where a job speaks
    except BaseException as unknown:  # noqa: BLE001 - whatever a tool raises is this job's failure
        if os.getpid() != pid:
            _end_copy(unknown)
        error = unexpected(task, unknown)
        with contextlib.suppress(OSError):
            if os.path.exists(task.log):  # without a log, the terminal of the user would show the traceback
                traceback.print_exc()
    _flush()
    if os.getpid() != pid:
        return None
    return WorkerAnswer(task.id, pid, report, error)


def _end_copy(error: BaseException) -> NoReturn:
    """End a copy of the worker that a step has forked, as Python ends a program after an exception."""
    code = error.code if isinstance(error, SystemExit) else 1
    with contextlib.suppress(OSError, ValueError):
        if not isinstance(error, SystemExit):
            traceback.print_exc()
    _flush()
    os._exit(code if isinstance(code, int) else 0 if code is None else 1)


def _flush() -> None:
    with contextlib.suppress(OSError, ValueError, AttributeError):  # the step may have closed or replaced the streams
        sys.stdout.flush()
        sys.stderr.flush()


def _speak_into(path: str) -> None:
    """Redirect standard output and standard error to a job's log at `path`, and change to the folder of the log."""
    log = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
    os.dup2(log, 1)
    os.dup2(log, 2)
    os.close(log)
    os.chdir(os.path.dirname(path))


def perform(task: WorkerTask, kind: Any = None) -> Mapping[str, object]:
    """Run a step and return its report as JSON. Raises StepError, and any error that the step raises.

    `kind` is the class of the step; without `kind`, the class is imported by the name in `task.step`.
    """
    if kind is None:
        module, _, name = task.step.partition(":")
        kind = getattr(importlib.import_module(module), name)
    from engine.step import GPU_VARIABLE, KEY_VARIABLE  # the step's own import has loaded pydantic already

    kind.name = task.name
    step = canonical.decode(kind, task.options)
    inputs = {key: value if value.startswith("hf:") else Path(value) for key, value in task.inputs.items()}
    out = Path(task.out)
    out.mkdir()
    os.environ[KEY_VARIABLE] = task.key
    if task.gpu:
        os.environ[GPU_VARIABLE] = task.gpu
    return _as_json(task.name, kind, step.run(out, **inputs))


def _as_json(name: str, kind: Any, report: Any) -> Mapping[str, object]:
    """Return a report as JSON values, which a record can keep.

    Raises StepError for a report of another type than the step declares.
    """
    if kind.report is not None and not isinstance(report, kind.report):
        raise StepError(f"the step {name!r} reports {type(report).__name__}, and declares {kind.report.__name__}")
    raw = dict(report or {}) if kind.report is None else report.to_json()
    try:
        written = json.loads(json.dumps(raw, allow_nan=False))
    except (TypeError, ValueError) as error:
        raise StepError(f"JSON cannot represent the report of the step {name!r}", [str(error)]) from error
    try:
        if kind.report is not None:
            kind.report.from_json(written)
    except ValueError as error:
        raise StepError(f"the report of the step {name!r} does not fit its declared type", [str(error)]) from error
    return raw


def unexpected(task: WorkerTask, error: BaseException) -> StepError:
    """Return the error of a job for an exception that a tool raised, or that the job's output caused."""
    name, facts = type(error).__name__, reasons.facts(error)
    facts[0] = facts[0] if facts[0].startswith(name) else f"{name}: {facts[0]}"
    reached = limits.reached(error)
    if isinstance(error, ImportError) and error.name and reached is None and not error.name.startswith("engine"):
        return MissingPackageError(error.name.partition(".")[0], facts[0])
    if _is_full(error) or _has_no_room(task.out):
        return StepError(
            f"the disk is full: the step {task.name!r} could not write what it makes",
            facts[:1],
            "free some space, or name a folder on another disk with --cache",
        )
    if reached is not None:
        return StepError(f"the step {task.name!r} failed: {reached.what}", reached.facts, reached.hint)
    return StepError(f"the step {task.name!r} failed", facts, f"the whole log: recipe logs RECIPE {task.name}")


def _is_full(error: BaseException) -> bool:
    """Say whether an error, or one of its causes, is a full disk or a used-up quota."""
    full = (errno.ENOSPC, errno.EDQUOT)
    return any(isinstance(cause, OSError) and cause.errno in full for cause in causes(error))


def _has_no_room(path: str) -> bool:
    """Say whether the disk of a job's output is full.

    `_has_no_room` measures the free space because native code reports a full disk by many kinds of errors.
    """
    try:
        disk = os.statvfs(os.path.dirname(path))
    except OSError:
        return False
    return disk.f_bavail * disk.f_frsize < _ROOM
