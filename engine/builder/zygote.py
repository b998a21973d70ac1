"""The zygote: a process with one thread that imports modules once and forks a fresh worker for each job."""

from __future__ import annotations

import contextlib
import gc
import importlib
import json
import os
import select
import signal
import socket
import sys
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NoReturn

from engine.builder import worker
from engine.builder.trace import hook
from engine.builder.worker_task import AnswerMemory, WorkerAnswer, WorkerTask
from engine.errors import UserError
from engine.store import output
from engine.system import processes

_GRACE_SECONDS = 0.5
"""How long processes that a job leaves behind may take to end by themselves."""
_GRACE_STEP = 0.01
_CHUNK = 1 << 16


def main() -> NoReturn:
    """Serve the builder at the other end of standard input, a socket, until the builder closes its end."""
    hook.install()
    control = socket.socket(fileno=os.dup(0))
    null = os.open(os.devnull, os.O_RDWR)
    for standard in (0, 1):
        os.dup2(null, standard)
    os.close(null)
    sys.stdout.reconfigure(line_buffering=True)  # type: ignore[union-attr]  # a text file, as in every script
    Zygote(control, "engine.step").serve()  # every step needs the module


@dataclass
class _Running:
    """The job of the present worker."""

    task: WorkerTask
    pid: int
    started: float
    ended: tuple[int, int] | None = None
    """The wait status and the peak memory in bytes of the worker, as soon as the worker has ended."""


class Zygote:
    """A zygote, which never runs the code of a step beyond the import of modules.

    The zygote takes two kinds of messages from the builder: a *branch* forks another zygote, which imports one more
    module, and a *task* forks a worker, which runs one job. All workers of a zygote therefore begin in the same state,
    whatever jobs have run before.
    """

    def __init__(self, control: socket.socket, module: str) -> None:
        """Import a module. A module that cannot be imported is the error of the job that needs the module."""
        _tell(control, {"zygote": os.getpid()})
        with contextlib.suppress(BaseException), hook.importing():
            importlib.import_module(module)
        self._control = control
        self._memory = AnswerMemory()
        self._zygotes: set[int] = set()
        self._running: _Running | None = None
        self._buffer = b""
        self._descriptors: list[int] = []
        self._wake = self._alarm = -1
        processes.adopt_orphans()
        gc.freeze()  # a collection in a worker then writes to no page that the worker shares with the zygote
        _tell(control, {"ready": True})

    def serve(self) -> NoReturn:
        """Handle messages and the ends of children until the builder closes its end of the socket."""
        self._wake, self._alarm = os.pipe()
        for end in (self._wake, self._alarm):
            os.set_blocking(end, False)
        signal.signal(signal.SIGCHLD, lambda *_: None)
        signal.set_wakeup_fd(self._alarm, warn_on_full_buffer=False)
        control = self._control.fileno()
        try:
            while True:
                ready, _, _ = select.select([control, self._wake], [], [])
                if self._wake in ready:
                    with contextlib.suppress(BlockingIOError):
                        os.read(self._wake, _CHUNK)
                    self._reap()
                if control in ready:
                    for message in self._messages():
                        self._handle(message)
        finally:
            processes.end_descendants(os.getpid())
            os._exit(0)

    def _messages(self) -> Iterator[Mapping[str, Any]]:
        """Yield the messages that have arrived. Raises EOFError where the builder has closed its end."""
        data, descriptors, _, _ = socket.recv_fds(self._control, _CHUNK, 1, socket.MSG_CMSG_CLOEXEC)
        if not data:
            raise EOFError
        self._descriptors += descriptors
        *lines, self._buffer = (self._buffer + data).split(b"\n")
        yield from map(json.loads, lines)

    def _handle(self, message: Mapping[str, Any]) -> None:
        """Fork a zygote or a worker.

        A process with several threads is never forked: a thread may hold a lock, which nobody would release in the
        child.
        """
        branch = socket.socket(fileno=self._descriptors.pop(0)) if "branch" in message else None
        task = WorkerTask(**message["task"]) if branch is None else None
        try:
            if not _forkable():
                _tell(branch or self._control, {"threads": processes.threads()})
            elif task is not None:
                self._start(task)
            elif branch is not None:
                self._branch(message["branch"], branch)
        except OSError as error:  # the system allows no further process
            if task is not None:
                _tell(self._control, {"id": task.id, "error": worker.unexpected(task, error).fields()})
        finally:
            if branch is not None:
                branch.close()

    def _branch(self, module: str, control: socket.socket) -> None:
        pid = os.fork()
        if pid:
            self._zygotes.add(pid)
            return
        try:
            self._forget_builder()
            Zygote(control, module).serve()
        finally:
            os._exit(1)

    def _start(self, task: WorkerTask) -> None:
        started = time.perf_counter()
        self._memory.clear()
        pid = os.fork()
        if pid:
            self._running = _Running(task, pid, started)
            return
        try:
            processes.die_with_parent()
            self._forget_builder()
            os.setsid()
            own = os.getpid()
            answer = worker.serve(task, own)
            if answer is None:
                self._memory.note_copy(os.getpid())
            else:
                self._memory.write(answer)
        finally:
            os._exit(0)

    def _forget_builder(self) -> None:
        """Close what leads to the builder, in a forked process, and restore the handling of signals."""
        signal.set_wakeup_fd(-1)
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        for end in (self._wake, self._alarm):
            os.close(end)
        self._control.close()

    def _reap(self) -> None:
        """Take note of all children that have ended, and kill orphans that no running job can have started."""
        with contextlib.suppress(ChildProcessError):
            while True:
                pid, status, usage = os.wait4(-1, os.WNOHANG)
                if pid == 0:
                    break
                self._zygotes.discard(pid)
                if self._running is not None and pid == self._running.pid:
                    unit = 1 if sys.platform == "darwin" else processes.KIB  # getrusage(2)
                    self._running.ended = status, usage.ru_maxrss * unit
        if self._running is None:
            self._end_orphans()
        elif self._running.ended is not None:
            running, ended = self._running, self._running.ended
            self._running = None
            _tell(self._control, self._outcome(running, *ended))

    def _outcome(self, running: _Running, status: int, peak: int) -> dict[str, object]:
        """Return the message about the end of a worker.

        The output is read when no process is left that could write it: neither the worker with its threads, nor a
        process that the worker has started.
        """
        self._settle(running)
        task = running.task
        text = self._memory.read()
        message: dict[str, object] = {
            "id": task.id,
            "pid": running.pid,
            "code": os.waitstatus_to_exitcode(status),
            "copy": self._memory.copy,
            "answer": text,
            "peak_bytes": peak,
        }
        answer = None if text is None else WorkerAnswer.decode(text)
        if answer is not None and answer.error is None:
            try:
                files = output.take(Path(task.out), flushes=task.flushes)
                message["files"] = files
                tree, report = output.tree(files), answer.report or {}
                message["binding"] = output.binding(step=task.step, key=task.key, tree=tree, report=report)
            except UserError as error:
                message["error"] = error.fields()
            except OSError as error:
                message["error"] = worker.unexpected(task, error).fields()
        message["seconds"] = time.perf_counter() - running.started
        return message

    def _settle(self, running: _Running) -> None:
        """Wait shortly for the processes that a worker has left behind, and kill those that do not end."""
        end = time.monotonic() + _GRACE_SECONDS
        while self._has_orphans() and time.monotonic() < end:
            time.sleep(_GRACE_STEP)
        self._end_orphans()
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(running.pid, signal.SIGKILL)

    def _has_orphans(self) -> bool:
        """Say whether this process has a living child that is no zygote; take note of children that have ended."""
        try:
            while (pid := os.waitpid(-1, os.WNOHANG)[0]) != 0:
                self._zygotes.discard(pid)
        except ChildProcessError:
            return False
        return bool(processes.descendants(os.getpid(), spare=self._zygotes))

    def _end_orphans(self) -> None:
        if self._has_orphans():
            processes.end_descendants(os.getpid(), spare=self._zygotes)
            self._has_orphans()


def _forkable() -> bool:
    """Say whether this process has one thread only.

    Some tools, such as OpenBLAS, end their threads when a process forks and start them again when they are needed. The
    first fork here makes such a tool end its threads; its child does nothing.
    """
    if processes.threads() == 1:
        return True
    pid = os.fork()
    if pid == 0:
        os._exit(0)
    os.waitpid(pid, 0)
    return processes.threads() == 1


def _tell(control: socket.socket, message: Mapping[str, object]) -> None:
    """Send a message to the builder; a builder that has closed its end gets none."""
    with contextlib.suppress(OSError):
        control.sendall(json.dumps(message).encode() + b"\n")
