"""A running Triton server: started, its models ready, stopped, and nothing left of it."""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import BinaryIO

from engine.errors import StepError
from engine.server import health, keeper, said, scratch
from engine.server import ports as choice
from engine.server.find import find
from engine.server.found import Found, Kind, Lacking, Place
from engine.server.health import State
from engine.server.needs import Needs, needs_of
from engine.server.ports import Ports
from engine.server.scratch import Scratch

STOP_SECONDS = 20.0
_CLEARED_SECONDS = 90.0
_POLL_SECONDS = 0.05
_TRIES = 3
_LOG = "server.log"


@dataclass(frozen=True)
class Server:
    """A server whose models are ready. `http`, `grpc` and `metrics` are ADDRESS:PORT."""

    http: str
    grpc: str
    metrics: str
    kind: Kind
    version: str
    """Of Triton, as it says itself."""
    stand_in: bool
    """Whether ONNX models are answered by the stand-in for Triton's own backend."""
    models: Mapping[str, State]
    log: Path
    pid: int
    _keeping: Keeping = field(repr=False, compare=False)

    def ended(self) -> int | None:
        """Return the server's exit code, 128 + n where signal n ended it; None while it runs."""
        return self._keeping.process.poll()

    def last_words(self) -> list[str]:
        """Return the last lines of its log, also when that went with it."""
        return said.tail(self._keeping.text())


@dataclass(frozen=True)
class Keeping:
    """The keeper of a server, what it clears in the end, and the log: open, so that it can be read to the end."""

    process: subprocess.Popen[bytes]
    plan: Mapping[str, object]
    log: BinaryIO

    def text(self) -> str:
        """Return the end of the log."""
        size = os.fstat(self.log.fileno()).st_size
        return os.pread(self.log.fileno(), said.TAIL_BYTES, max(0, size - said.TAIL_BYTES)).decode("utf-8", "replace")

    def end(self, how: bytes) -> None:
        """Ask the keeper to end the server, `q` or `k` as keeper.py says, and wait; an interrupt makes it quick."""
        with contextlib.suppress(OSError, ValueError):
            self._tell(how)
        try:
            self.process.wait(STOP_SECONDS + _CLEARED_SECONDS)
        except (KeyboardInterrupt, subprocess.TimeoutExpired):
            with contextlib.suppress(OSError, ValueError):
                self._tell(b"k")
            self.process.wait(_CLEARED_SECONDS)
        if self.process.returncode < 0:  # the keeper was killed, and the server with it
            keeper.clear(self.plan)
        for pipe in (self.process.stdin, self.process.stdout, self.log):
            if pipe is not None:
                with contextlib.suppress(OSError):
                    pipe.close()

    def _tell(self, word: bytes) -> None:
        if self.process.stdin is not None:
            os.write(self.process.stdin.fileno(), word)


@dataclass(frozen=True)
class _Wanted:
    """What is to be started."""

    found: Found
    repository: Path
    needs: Needs
    ports: Ports | None
    log: Path | None
    patience: float
    belongings: tuple[Path, ...]


class _PortTakenError(StepError):
    """Another program took a port between its choice and the server's start."""


@contextlib.contextmanager
def start(
    repository: Path,
    *,
    found: Found | None = None,
    ports: Ports | None = None,
    log: Path | None = None,
    patience: float = 600.0,
    belongings: Sequence[Path] = (),
) -> Iterator[Server]:
    """Serve a model repository until the block ends.

    Without `found`, by the first server that fits; without `ports`, on any that are free. The log is written to `log`,
    or goes with the server. `patience` is how many seconds the models may take to load, `belongings` are folders that
    are taken away with the server. Raises StepError where there is no server, it does not come up, or a model fails.
    """
    needs = needs_of(repository)
    wanted = _Wanted(found or find(needs), repository.absolute(), needs, ports, log, patience, tuple(belongings))
    server = _started(wanted)
    try:
        yield server
    finally:
        server._keeping.end(b"q")  # noqa: SLF001 - it is this module's own


def _started(wanted: _Wanted) -> Server:
    """Start the server; where the ports are ours to choose, again with others should one be taken meanwhile."""
    for _ in range(_TRIES - 1 if wanted.ports is None else 0):
        with contextlib.suppress(_PortTakenError):
            return _try(wanted)
    return _try(wanted)


def _try(wanted: _Wanted) -> Server:
    own = scratch.new()
    ports = wanted.ports or choice.free()
    log = wanted.log or own.folder / _LOG
    try:
        keeping = _kept(wanted, own, ports, log)
    except BaseException:
        own.drop()
        raise
    own.lock.release()  # the keeper has it now
    try:
        return _ready(wanted, own.name, keeping, ports, log)
    except BaseException:
        keeping.end(b"k")
        raise


def _kept(wanted: _Wanted, own: Scratch, ports: Ports, log: Path) -> Keeping:
    """Start the server under its keeper."""
    place = Place(wanted.repository, ports, own.folder, own.name, wanted.needs)
    try:
        launch = wanted.found.launch(place)
    except (Lacking, OSError) as error:
        raise StepError("the Triton server cannot be laid out", [str(error)]) from error
    plan = {
        "command": list(launch.command),
        "environment": dict(launch.environment),
        "afterwards": [list(each) for each in launch.afterwards],
        "patience": STOP_SECONDS,
        "shared_memory": f"{own.name}_",
        "folders": [str(each.absolute()) for each in (*wanted.belongings, own.folder)],
    }
    own.write_plan(plan)
    try:
        log.parent.mkdir(parents=True, exist_ok=True)
        file = log.open("w+b")
    except OSError as error:
        raise StepError(
            f"the server's log cannot be written to {log}", [str(error.strerror)], "name a file that can be written"
        ) from error
    command = [sys.executable, "-I", "-S", keeper.__file__, str(own.folder), str(own.lock.handle)]
    process = subprocess.Popen(  # noqa: S603 - our own file
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=file, pass_fds=(own.lock.handle,),
        start_new_session=True,
    )  # fmt: skip
    return Keeping(process, plan, file)


def _ready(wanted: _Wanted, name: str, keeping: Keeping, ports: Ports, log: Path) -> Server:
    """Wait until the server of that name says how its models are. Raises StepError."""
    pid = int((keeping.process.stdout.readline() if keeping.process.stdout else b"") or 0)
    host = "127.0.0.1" if ports.address == "0.0.0.0" else ports.address  # noqa: S104 - where to ask, not to listen
    http = f"{host}:{ports.http}"
    deadline = time.monotonic() + wanted.patience
    while not health.is_there(http, name):
        if keeping.process.poll() is not None:
            raise _gone(keeping)
        if time.monotonic() > deadline:
            raise StepError(
                f"the Triton server did not answer within {wanted.patience:.0f} s", said.tail(keeping.text())
            )
        time.sleep(_POLL_SECONDS)
    states = health.states(http, wanted.needs.models, said.polled(keeping.text()))
    failed = {name: state for name, state in states.items() if not state.ready}
    if failed:
        raise _failed(failed)
    return Server(
        http, f"{host}:{ports.grpc}", f"{host}:{ports.metrics}", wanted.found.kind, health.version(http),
        wanted.found.stand_in, states, log, pid, keeping,
    )  # fmt: skip


def _gone(keeping: Keeping) -> StepError:
    text = keeping.text()
    lines = said.tail(text)
    kind = _PortTakenError if said.port_is_taken(text) else StepError
    what = f"the Triton server ended before it was ready ({said.ended(keeping.process.returncode)})"
    return kind(what, lines, said.meaning(lines))


def _failed(states: Mapping[str, State]) -> StepError:
    names = " and ".join(states)
    facts = [f"{name}: {state.reason}" for name, state in states.items()]
    return StepError(f"Triton cannot load {names}", facts, said.meaning(facts))
