"""The outcome of a job from what its zygote reports: the answer of the worker, if it is the answer to this job."""

from __future__ import annotations

import signal
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from engine.builder.worker_task import MissingPackageError, Outcome, WorkerAnswer, WorkerTask, error_of
from engine.digest import Digest
from engine.errors import StepError, UserError
from engine.system import regular
from engine.text import distribution, redaction, sizes

_LAST_LINES = 3
"""The number of log lines that the error about a dead worker shows."""
_TAIL_BYTES = 8192
"""The number of bytes that are read from the end of a log to find the last lines of the log."""


class CrashedWorkerError(StepError):
    """The worker of a job ended without an answer."""


def outcome(task: WorkerTask, message: Mapping[str, Any]) -> Outcome:
    """Return the outcome of a task from the message of its zygote about the end of the worker."""
    try:
        if message.keys() == {"id", "error"} and message["id"] == task.id:
            return Outcome(None, error_of(message["error"]), 0.0, 0)
        seconds, peak_bytes = float(message["seconds"]), int(message["peak_bytes"])
        refusal = _refusal(task, message)
        if refusal is not None:
            return Outcome(None, refusal, seconds, peak_bytes)
        answer = WorkerAnswer.decode(message["answer"])
        if answer.error is not None or "error" in message:
            return Outcome(None, worded(task, answer.error or error_of(message["error"])), seconds, peak_bytes)
        files = {name: (int(size), Digest(content)) for name, (size, content) in message["files"].items()}
        return Outcome(answer.report, None, seconds, peak_bytes, files, str(message["binding"]))
    except (ValueError, TypeError, KeyError, AttributeError):
        return Outcome(None, _foreign(task, "the answer is no whole answer of a worker"), 0.0, 0)


def worded(task: WorkerTask, error: UserError) -> UserError:
    """Return an error of a worker as users read it: with the command that installs a missing package."""
    if not isinstance(error, MissingPackageError):
        return error
    return cannot_import(task.name, error.module, *error.facts)


def cannot_import(step: str, module: str, *why: str) -> StepError:
    """Return the error for a step whose import of `module` failed, with the command that installs the package."""
    name = distribution.of_module(module)
    extra = distribution.extra_with(name) or "cpu"
    return StepError(
        f"the step {step!r} needs {module!r}, which cannot be imported",
        why,
        f"install it: `{distribution.install(extra)}` (`recipe doctor` shows what is installed){_instead(name)}",
    )


def _instead(name: str) -> str:
    """Return the hint to name the default runtime, for a distribution that is only needed by another runtime."""
    from engine.recipe.schema import TargetSection
    from engine.runtimes import registry  # only for an error

    default = TargetSection().runtime
    needed_by = [each.name for each in registry.runtimes().values() if each.targets and name in each.tools_for]
    return f"; or name `runtime: {default}`, which does without" if needed_by and default not in needed_by else ""


def _refusal(task: WorkerTask, message: Mapping[str, Any]) -> StepError | None:
    """Return an error for a worker that did not answer, or whose answer is not the answer to this task."""
    if message["id"] != task.id:
        return _foreign(task, f"the answer is for the run {message['id']}, and this run is {task.id}")
    if message["copy"]:
        return StepError(
            f"the step {task.name!r} forked its worker, and the copy returned from the step, too",
            [f"the worker was process {message['pid']}, the copy was process {message['copy']}"],
            "a process that a step forks must end with os._exit, not return",
        )
    if message["answer"] is None:
        return crash(task, message["code"], int(message["peak_bytes"]))
    answer = WorkerAnswer.decode(message["answer"])
    if (answer.task, answer.pid) != (task.id, message["pid"]):
        facts = f"run {answer.task} of process {answer.pid}, not run {task.id} of process {message['pid']}"
        return _foreign(task, f"the answer is from {facts}")
    return None


def _foreign(task: WorkerTask, fact: str) -> StepError:
    return StepError(
        f"the worker of step {task.name!r} gave an answer that does not belong to this run",
        [fact, "the answer was thrown away"],
        f"the whole log: recipe logs RECIPE {task.name}",
    )


def overtime(task: WorkerTask, time_limit: float) -> StepError:
    """Return the error of a job that ran longer than its limit."""
    return StepError(
        f"the step {task.name!r} was stopped: it ran longer than its limit of {time_limit:g} s",
        _last_words(task),
        f"the whole log: recipe logs RECIPE {task.name}",
    )


def crash(task: WorkerTask, code: int | None = None, peak_bytes: int = 0) -> CrashedWorkerError:
    """Return the error of a job whose worker ended without an answer.

    Where its zygote has ended, too, nobody knows its exit code and its peak memory.
    """
    facts = [*([f"peak memory {sizes.binary(peak_bytes)}"] if peak_bytes else []), *_last_words(task)]
    if code is None or code == -signal.SIGKILL:
        return CrashedWorkerError(
            f"the worker of step {task.name!r} was killed from outside (signal 9)",
            facts,
            "usually the kernel ran out of memory: build with -j 1, or on a machine with more memory",
        )
    if code == 0:
        return CrashedWorkerError(
            f"the worker of step {task.name!r} ended without an answer (exit code 0)",
            facts,
            "the step ended its process, replaced it by another program, or went on in another process",
        )
    how = f"signal {-code}, {signal.strsignal(-code)}" if code < 0 else f"exit code {code}"
    return CrashedWorkerError(
        f"the worker of step {task.name!r} crashed ({how})",
        facts,
        f"native code of a tool ended it; the whole log: recipe logs RECIPE {task.name}",
    )


def _last_words(task: WorkerTask) -> list[str]:
    return [f"last in its log: {line}" for line in last_lines(Path(task.log), _LAST_LINES)]


def last_lines(log: Path, count: int) -> list[str]:
    """Return the last non-empty lines of a log, [] for a missing log."""
    try:
        with regular.open_file(log) as file:
            file.seek(max(0, log.stat().st_size - _TAIL_BYTES))
            text = redaction.redacted_bytes(file.read()).decode("utf-8", "replace")
    except OSError:
        return []
    return [line.strip() for line in text.splitlines() if line.strip()][-count:]
