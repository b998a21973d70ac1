"""The builder's side of zygotes: starts them, sends them messages, and reads what they report."""

from __future__ import annotations

import contextlib
import json
import socket
import subprocess
import sys
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from typing import Any

from engine.builder import zygote_loader
from engine.builder.executors import environment
from engine.builder.worker_task import WorkerTask
from engine.store import user_cache
from engine.system import processes

_CHUNK = 1 << 16


@dataclass(frozen=True)
class Lineage:
    """What decides the state of a zygote: the environment variables of its jobs, and the modules that it imports."""

    variables: tuple[str, ...]
    """The environment variables that the steps declare, in addition to the variables of every worker."""
    modules: tuple[str, ...] = ()
    """The imported modules, in order. The zygote with all modules but the last one forks the zygote with the last."""

    @property
    def parent(self) -> Lineage:
        """The lineage without the last module."""
        return Lineage(self.variables, self.modules[:-1])


class ZygoteHandle:
    """A zygote as the builder sees it."""

    def __init__(self, lineage: Lineage, control: socket.socket, process: subprocess.Popen[bytes] | None) -> None:
        self.lineage = lineage
        self.control = control
        self.pid = 0 if process is None else process.pid
        self.ready = False
        """Whether the zygote has imported its modules."""
        self._process = process
        self._buffer = b""

    @classmethod
    def spawn(cls, variables: tuple[str, ...]) -> ZygoteHandle:
        """Start the zygote without modules, from which all others with the same environment variables are forked.

        Raises OSError.
        """
        with _ends() as (ours, theirs):
            process = subprocess.Popen(  # noqa: S603 - our own interpreter
                zygote_loader.command(str(user_cache.folder() / "bytecode"), sys.path),
                stdin=theirs.fileno(),
                stdout=subprocess.DEVNULL,
                env=environment.for_worker(variables),
                start_new_session=True,
            )
        return cls(Lineage(variables), ours, process)

    def branch(self, module: str) -> ZygoteHandle:
        """Let this zygote fork another one, which imports one more module. Raises OSError."""
        with _ends() as (ours, theirs):
            self._send({"branch": module}, theirs)
        return ZygoteHandle(Lineage(self.lineage.variables, (*self.lineage.modules, module)), ours, None)

    def start(self, task: WorkerTask) -> None:
        """Let this zygote fork a worker for a task. Raises ConnectionError where the zygote has ended."""
        self._send({"task": asdict(task)})

    def _send(self, message: Mapping[str, object], *ends: socket.socket) -> None:
        raw = json.dumps(message).encode() + b"\n"
        if ends:
            count = socket.send_fds(self.control, [raw], [end.fileno() for end in ends])
            raw = raw[count:]
        self.control.sendall(raw)

    def messages(self) -> Iterator[Mapping[str, Any]]:
        """Yield the messages that have arrived. Raises EOFError where the zygote has ended, or writes nonsense."""
        try:
            data = self.control.recv(_CHUNK)
        except OSError:
            data = b""
        if not data:
            raise EOFError
        *lines, self._buffer = (self._buffer + data).split(b"\n")
        for line in lines:
            message = _object(line)
            if "zygote" in message:
                self.pid = int(message["zygote"])
            elif "ready" in message:
                self.ready = True
            else:
                yield message

    def remove(self) -> None:
        """End the zygote and all processes that come from it, its workers included."""
        self.control.close()
        if self.pid:
            processes.end(self.pid)
        if self._process is not None:
            self._process.wait()


@contextlib.contextmanager
def _ends() -> Iterator[tuple[socket.socket, socket.socket]]:
    """Return the ends of a connection with a new zygote: the builder's end, and that which the zygote gets."""
    ours, theirs = socket.socketpair()
    with theirs:
        try:
            yield ours, theirs
        except OSError:
            ours.close()
            raise


def _object(line: bytes) -> Mapping[str, Any]:
    with contextlib.suppress(ValueError):
        message = json.loads(line)
        if isinstance(message, dict):
            return message
    raise EOFError
