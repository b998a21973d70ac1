"""The worker: a child process that runs jobs one after the other, with a log and the peak memory of each job."""

from __future__ import annotations

import contextlib
import errno
import importlib
import json
import os
import resource
import sys
import threading
import time
import traceback
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import IO, Any

from engine.builder.trace import hook
from engine.digest import Digest
from engine.errors import StepError, UserError, causes
from engine.store import output
from engine.store.output import Files
from engine.system import limits
from engine.text import distribution

_ROOM = 1 << 16
"""A disk that has fewer free bytes than this number counts as full."""
_KIB = 1024
"""Bytes in a KiB, the unit of memory sizes in Linux's proc(5) and getrusage(2)."""
_LISTED = 8
"""The greatest number of lines of an exception's text that an error lists."""


@dataclass(frozen=True)
class WorkerTask:
    """The work for one run of a job: names, values and paths, no code and no data."""

    step: str
    """The class of the step, written as `module:Class`."""
    name: str
    options: Mapping[str, Any]
    inputs: Mapping[str, str]
    """The value of each parameter of the step's `run`: an absolute path, or a hub location such as `hf:REPO@COMMIT`."""
    out: str
    log: str
    key: str = ""
    """The digest of the job's key, for steps that write it into their output."""


@dataclass(frozen=True)
class Outcome:
    """What a worker returns after one run of a job: a report or an error, with measurements and output files."""

    report: Mapping[str, object] | None
    error: UserError | None
    seconds: float
    peak_bytes: int
    files: Files = field(default_factory=dict)
    """The output files: from the relative path to the size in bytes and the digest of the content."""


def command() -> list[str]:
    """Return the command line that starts a worker, with the Python interpreter and the import path of this process."""
    code = "import sys,json; sys.path[:] = json.loads(sys.argv[1]); from engine.builder.worker import main; main()"
    return [sys.executable, "-P", "-s", "-c", code, json.dumps([os.path.abspath(entry) for entry in sys.path])]


def main() -> None:
    """Run the jobs that standard input describes as JSON lines, and write the outcome of each job to standard output.

    While a task runs, the standard output and standard error of Python and native code go to the task's log.
    """
    hook.install()
    requests = os.fdopen(os.dup(0), "rb")
    answers = os.fdopen(os.dup(1), "wb")
    null = os.open(os.devnull, os.O_RDWR)
    os.dup2(null, 0)
    os.dup2(2, 1)
    sys.stdout.reconfigure(line_buffering=True)  # type: ignore[union-attr]  # a text file, as in every script
    for task in _tasks(requests):
        answers.write(encode_outcome(_serve(task)))
        answers.flush()


def _tasks(stream: IO[bytes]) -> Any:
    """Yield tasks.

    A thread reads standard input ahead, so that this process ends as soon as its parent dies, even during a task.
    """
    import queue

    tasks: queue.SimpleQueue[WorkerTask] = queue.SimpleQueue()

    def read() -> None:
        for line in stream:
            tasks.put(WorkerTask(**json.loads(line)))
        os._exit(0)

    try:
        threading.Thread(target=read, daemon=True).start()
    except RuntimeError:  # the system starts no further thread: the tasks are read one after the other
        for line in stream:
            yield WorkerTask(**json.loads(line))
        os._exit(0)
    while True:
        yield tasks.get()


def _serve(task: WorkerTask) -> Outcome:
    _reset_peak()
    started = time.perf_counter()
    report: Mapping[str, object] = {}
    error: UserError | None = None
    files: Files = {}
    try:
        _speak_into(task.log)
        with hook.recording(task.step, os.path.dirname(task.log), task.inputs.values()):
            report = perform(task)
        files = output.take(Path(task.out))
    except UserError as known:
        error = known
        with contextlib.suppress(OSError):  # the log may be on a full disk
            print(f"{known}")  # noqa: T201 - the log is where a job speaks
    except BaseException as unknown:  # noqa: BLE001 - whatever a tool raises is this job's failure, not the worker's
        error = _unexpected(task, unknown)
        with contextlib.suppress(OSError):
            traceback.print_exc()
    with contextlib.suppress(OSError):
        sys.stdout.flush()
        sys.stderr.flush()
    return Outcome(report, error, time.perf_counter() - started, _peak_bytes(), files)


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
    from engine.step import KEY_VARIABLE  # the step's own import has loaded pydantic already

    kind.name = task.name
    step = kind.model_validate(task.options)
    inputs = {key: value if value.startswith("hf:") else Path(value) for key, value in task.inputs.items()}
    out = Path(task.out)
    out.mkdir()
    os.environ[KEY_VARIABLE] = task.key
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


def _unexpected(task: WorkerTask, error: BaseException) -> StepError:
    text = f"{type(error).__name__}: {error}".strip()
    reached = limits.reached(error)
    if isinstance(error, ImportError) and error.name and reached is None and not error.name.startswith("engine"):
        return StepError(
            f"the step {task.name!r} needs {error.name.partition('.')[0]!r}, which cannot be imported",
            text.splitlines()[:1],
            f"install it: `{distribution.install('cpu')}` has all that a CPU build needs (`recipe doctor`)",
        )
    if _is_full(error) or _has_no_room(task.out):
        return StepError(
            f"the disk is full: the step {task.name!r} could not write what it makes",
            text.splitlines()[:1],
            "free some space, or name a folder on another disk with --cache",
        )
    if reached is not None:
        return StepError(f"the step {task.name!r} failed: {reached.what}", reached.facts, reached.hint)
    return StepError(
        f"the step {task.name!r} failed", text.splitlines()[:_LISTED], f"the whole log: recipe logs RECIPE {task.name}"
    )


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


def encode_task(task: WorkerTask) -> bytes:
    """Return a task as the line of JSON that a worker reads."""
    return json.dumps(asdict(task)).encode() + b"\n"


def encode_outcome(outcome: Outcome) -> bytes:
    """Return the Outcome of a task as the line of JSON that a worker writes."""
    error = None if outcome.error is None else outcome.error.fields()
    raw = {
        "report": outcome.report,
        "error": error,
        "seconds": outcome.seconds,
        "peak_bytes": outcome.peak_bytes,
        "files": outcome.files,
    }
    return json.dumps(raw).encode() + b"\n"


def decode_outcome(line: bytes) -> Outcome:
    """Return the Outcome of a task from the line of JSON that a worker wrote."""
    raw = json.loads(line)
    error = raw["error"] and StepError(raw["error"]["what"], raw["error"]["facts"], raw["error"]["hint"])
    files = {name: (int(size), Digest(content)) for name, (size, content) in raw["files"].items()}
    return Outcome(raw["report"], error, raw["seconds"], raw["peak_bytes"], files)


def _reset_peak() -> None:
    """Reset this process's peak memory to the present use (Linux: proc(5), clear_refs)."""
    try:
        Path("/proc/self/clear_refs").write_text("5")
    except OSError:
        return


def _peak_bytes() -> int:
    """Return this process's peak resident memory in bytes since the last reset, or since its start."""
    unit = 1 if sys.platform == "darwin" else _KIB  # getrusage(2)
    return peak_of("self") or resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit


def peak_of(pid: int | str) -> int:
    """Return a process's peak resident memory in bytes, 0 where the system does not tell."""
    try:
        status = Path(f"/proc/{pid}/status").read_text()
    except OSError:
        return 0
    return next((int(line.split()[1]) * _KIB for line in status.splitlines() if line.startswith("VmHWM:")), 0)
