"""Worker processes on this machine: reused for similar jobs, replaced when they die."""

from __future__ import annotations

import contextlib
import os
import selectors
import signal
import subprocess
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, TYPE_CHECKING

from engine.builder import worker
from engine.builder.executors import environment
from engine.builder.worker import Outcome, WorkerTask
from engine.errors import StepError
from engine.system import regular
from engine.text import sizes

if TYPE_CHECKING:
    from engine.builder.job import Traits

_POLL_SECONDS = 0.2
_LAST_LINES = 3
"""The number of log lines that the error about a dead worker shows."""
_TAIL_BYTES = 8192
"""The number of bytes that are read from the end of a log to find the last lines of the log."""


@dataclass
class _Worker:
    process: subprocess.Popen[bytes]
    variables: tuple[str, ...]
    """The environment variables that the steps of this worker declare, in addition to the variables of every worker."""
    loaded: set[str] = field(default_factory=set)
    """The tools of this worker's earlier jobs, which the worker process has imported already."""
    task: WorkerTask | None = None
    ident: object = None
    deadline: float = 0.0
    started: float = 0.0
    time_limit: float = 0.0
    peak_bytes: int = 0


class LocalExecutor:
    """An executor that runs at most `slots` jobs at a time, each in a worker process."""

    def __init__(self, slots: int) -> None:
        self.slots = slots
        self._workers: list[_Worker] = []
        self._selector = selectors.DefaultSelector()
        self._watched = 0.0

    @property
    def busy(self) -> int:
        """The number of running jobs."""
        return sum(worker.task is not None for worker in self._workers)

    def start_early(self, traits: Traits) -> None:
        """Start a worker that fits a job, although the job may turn out to be cached: Python takes long to start."""
        self._spawn(traits.variables)

    def submit(
        self, ident: object, task: WorkerTask, *, tools: Sequence[str], variables: Sequence[str], time_limit: float
    ) -> None:
        """Give a worker one job to run; `poll` later returns the outcome of the run together with `ident`."""
        chosen = self._worker_for(tools, tuple(variables))
        now = time.monotonic()
        chosen.task, chosen.ident, chosen.started = task, ident, now
        chosen.deadline, chosen.time_limit, chosen.peak_bytes = now + time_limit, time_limit, 0
        chosen.loaded.update(tools)
        # If an idle worker has died, `poll` sees the end of the worker's answers.
        with contextlib.suppress(BrokenPipeError):
            stdin = _pipe(chosen.process.stdin)
            stdin.write(worker.encode_task(task))
            stdin.flush()

    def poll(self, timeout: float = _POLL_SECONDS) -> list[tuple[object, Outcome]]:
        """Wait up to `timeout` seconds for outcomes, and return each outcome with the `ident` of its task."""
        done = []
        for event, _ in self._selector.select(timeout):
            child: _Worker = event.data
            outcome = self._answer(child)
            if outcome is not None:
                done.append((child.ident, outcome))
                child.task = None
        now = time.monotonic()
        if now - self._watched > _POLL_SECONDS:
            self._watched = now
            done += self._watch(now)
        return done

    def _watch(self, now: float) -> list[tuple[object, Outcome]]:
        """Remember the peak memory of each worker that is running a job.

        End each worker that is past its deadline, and return an outcome with an error for the task of the worker.
        """
        late = []
        for each in [w for w in self._workers if w.task is not None]:
            each.peak_bytes = max(each.peak_bytes, worker.peak_of(each.process.pid))
            if now > each.deadline:
                late.append((each.ident, _overtime(each)))
                self._remove(each)
        return late

    def close(self) -> None:
        """Kill all workers and the programs that they have started."""
        for each in self._workers:
            _kill(each)  # kill all before waiting for any: a process with gigabytes ends slowly
        for each in list(self._workers):
            self._remove(each)
        self._selector.close()

    def _worker_for(self, tools: Sequence[str], variables: tuple[str, ...]) -> _Worker:
        idle = [w for w in self._workers if w.task is None]
        fit = [w for w in idle if w.variables == variables]
        best = max(fit, key=lambda w: len(w.loaded & set(tools)), default=None)
        knows = best is not None and (not tools or not best.loaded or best.loaded & set(tools))
        full = len(self._workers) >= self.slots
        if best is not None and (knows or full):
            return best
        if full and idle:
            self._remove(idle[0])
        return self._spawn(variables)

    def _spawn(self, variables: tuple[str, ...]) -> _Worker:
        process = subprocess.Popen(  # noqa: S603 - our own interpreter
            worker.command(),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env=environment.for_worker(variables),
            start_new_session=True,
        )
        child = _Worker(process, variables)
        self._workers.append(child)
        self._selector.register(_pipe(process.stdout), selectors.EVENT_READ, child)
        return child

    def _answer(self, child: _Worker) -> Outcome | None:
        line = _pipe(child.process.stdout).readline()
        if line.endswith(b"\n"):
            return worker.decode_outcome(line)
        code = child.process.wait()
        outcome = _crash(child, code) if child.task is not None else None
        self._remove(child)
        return outcome

    def _remove(self, dead: _Worker) -> None:
        self._workers.remove(dead)
        self._selector.unregister(_pipe(dead.process.stdout))
        _kill(dead)
        dead.process.wait()
        for pipe in (dead.process.stdin, dead.process.stdout):
            with contextlib.suppress(OSError):
                _pipe(pipe).close()


def _kill(each: _Worker) -> None:
    """Kill a worker and its process group, because tools start programs of their own."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(each.process.pid, signal.SIGKILL)
    each.process.kill()


def _pipe(pipe: IO[bytes] | None) -> IO[bytes]:
    if pipe is None:
        raise AssertionError("workers are started with pipes")
    return pipe


def _outcome(child: _Worker, error: StepError) -> Outcome:
    return Outcome(None, error, time.monotonic() - child.started, child.peak_bytes)


def _overtime(child: _Worker) -> Outcome:
    name = child.task.name if child.task else ""
    return _outcome(
        child,
        StepError(
            f"the step {name!r} was stopped: it ran longer than its limit of {child.time_limit:g} s",
            _last_words(child),
            f"the whole log: recipe logs RECIPE {name}",
        ),
    )


def _crash(child: _Worker, code: int) -> Outcome:
    name = child.task.name if child.task else ""
    facts = [f"peak memory {sizes.binary(child.peak_bytes)}", *_last_words(child)]
    if code == -signal.SIGKILL:
        return _outcome(
            child,
            StepError(
                f"the worker of step {name!r} was killed from outside (signal 9)",
                facts,
                "usually the kernel ran out of memory: build with -j 1, or on a machine with more memory",
            ),
        )
    how = f"signal {-code}, {signal.strsignal(-code)}" if code < 0 else f"exit code {code}"
    return _outcome(
        child,
        StepError(
            f"the worker of step {name!r} crashed ({how})",
            facts,
            f"native code of a tool ended it; the whole log: recipe logs RECIPE {name}",
        ),
    )


def _last_words(child: _Worker) -> list[str]:
    if child.task is None:
        return []
    lines = last_lines(Path(child.task.log), _LAST_LINES)
    return [f"last in its log: {line}" for line in lines]


def last_lines(log: Path, count: int) -> list[str]:
    """Return the last non-empty lines of a log, [] for a missing log."""
    try:
        with regular.open_file(log) as file:
            file.seek(max(0, log.stat().st_size - _TAIL_BYTES))
            text = environment.redacted(file.read()).decode("utf-8", "replace")
    except OSError:
        return []
    return [line.strip() for line in text.splitlines() if line.strip()][-count:]
