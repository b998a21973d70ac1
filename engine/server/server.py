"""A running Triton server: start it, wait until its models are ready, stop it and remove all that it leaves."""

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

from engine.client.model_metadata import ModelState
from engine.errors import StepError
from engine.server import diagnosis, health, keeper, scratch
from engine.server import ports as choice
from engine.server.discovery import find
from engine.server.installation import Installation, Kind, Lacking, ServerSetup
from engine.server.ports import Ports
from engine.server.repository_needs import Needs, needs_of
from engine.server.scratch import Scratch

STOP_SECONDS = 20.0
"""How many seconds a server may take to end after it was asked to end; then the keeper kills the server."""
_CLEARED_SECONDS = 90.0
"""How many seconds the keeper may take to clean up after the server."""
_POLL_SECONDS = 0.05
_TRIES = 3
"""Upper limit of the attempts to start a server; an attempt fails where another program takes a port of the server."""
_LOG = "server.log"


@dataclass(frozen=True)
class Server:
    """A server whose models are ready. `http`, `grpc` and `metrics` are addresses of the form ADDRESS:PORT."""

    http: str
    grpc: str
    metrics: str
    kind: Kind
    version: str
    """Triton's version, as the running server reports it."""
    stand_in: bool
    """Whether stand-ins for Triton's onnxruntime and openvino backends answer for their models."""
    models: Mapping[str, ModelState]
    log: Path
    pid: int
    _keeping: Keeping = field(repr=False, compare=False)

    def ended(self) -> int | None:
        """Return the server's exit code, 128 + n where signal n ended the server; None while the server runs."""
        return self._keeping.process.poll()

    def last_words(self) -> list[str]:
        """Return the last lines of the server's log, even where the log file is removed already."""
        return diagnosis.tail(self._keeping.text())


@dataclass(frozen=True)
class Keeping:
    """The keeper process of a server, the instructions by which it cleans up, and the log, read also once removed."""

    process: subprocess.Popen[bytes]
    plan: Mapping[str, object]
    log: BinaryIO

    def text(self) -> str:
        """Return the end of the server's log as text."""
        size = os.fstat(self.log.fileno()).st_size
        end = os.pread(self.log.fileno(), diagnosis.TAIL_BYTES, max(0, size - diagnosis.TAIL_BYTES))
        return end.decode("utf-8", "replace")

    def end(self, how: bytes) -> None:
        """Let the keeper end the server, `q` cleanly or `k` at once, and wait; Ctrl-C turns `q` into `k`."""
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
class _Plan:
    """The data for starting a server: the installation of Triton, and the arguments of `start`."""

    installation: Installation
    repository: Path
    needs: Needs
    ports: Ports | None
    log: Path | None
    patience: float
    belongings: tuple[Path, ...]
    further: tuple[str, ...]


class _PortTakenError(StepError):
    """Another program took a port after the port was chosen and before the server started."""


@contextlib.contextmanager
def start(
    repository: Path,
    *,
    installation: Installation | None = None,
    ports: Ports | None = None,
    log: Path | None = None,
    patience: float = 600.0,
    belongings: Sequence[Path] = (),
    further: Sequence[str] = (),
) -> Iterator[Server]:
    """Serve a model repository until the block ends.

    Without `installation` the first server that fits is started; without `ports` free ports are chosen; without `log`
    the log is removed when the server ends. `patience` is how many seconds the models may take to load; `belongings`
    are folders that are removed when the server ends; `further` are options of `tritonserver`. Raises StepError where
    no server fits, where the server does not start, or where a model fails to load.
    """
    needs = needs_of(repository)
    installation = installation or find(needs)
    plan = _Plan(installation, repository.absolute(), needs, ports, log, patience, tuple(belongings), tuple(further))
    server = _started(plan)
    try:
        yield server
    finally:
        server._keeping.end(b"q")  # noqa: SLF001 - it is this module's own


def _started(plan: _Plan) -> Server:
    """Start the server; where another program takes a freely chosen port meanwhile, start again with other ports."""
    for _ in range(_TRIES - 1 if plan.ports is None else 0):
        with contextlib.suppress(_PortTakenError):
            return _try(plan)
    return _try(plan)


def _try(plan: _Plan) -> Server:
    """Start the server once, and wait until its models are ready. Raises StepError where a model does not get ready."""
    own = scratch.new()
    ports = plan.ports or choice.free()
    log = plan.log or own.folder / _LOG
    try:
        keeping = _start_keeper(plan, own, ports, log)
    except BaseException:
        own.drop()
        raise
    os.close(own.lock.handle)  # the keeper holds the lock now, and its file stays
    try:
        return _ready(plan, own.name, keeping, ports, log)
    except BaseException:
        keeping.end(b"k")
        raise


def _start_keeper(plan: _Plan, own: Scratch, ports: Ports, log: Path) -> Keeping:
    """Start the keeper, which starts the server. Raises StepError where a file of the server cannot be written."""
    setup = ServerSetup(plan.repository, ports, own.folder, own.name, plan.needs, plan.further)
    try:
        launch = plan.installation.launch(setup)
    except (Lacking, OSError) as error:
        raise StepError("the files of the Triton server cannot be written", [str(error)]) from error
    keeper_plan = {
        "command": list(launch.command),
        # The keeper has the variables of this process; a file must not have their values.
        "environment": {k: None if os.environ.get(k) == v else v for k, v in launch.environment.items()},
        "afterwards": [list(each) for each in launch.afterwards],
        "patience": STOP_SECONDS,
        "shared_memory": f"{own.name}_",
        "folders": [str(each.absolute()) for each in (*plan.belongings, own.folder)],
    }
    own.write_plan(keeper_plan)
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
    return Keeping(process, keeper_plan, file)


def _ready(plan: _Plan, name: str, keeping: Keeping, ports: Ports, log: Path) -> Server:
    """Wait until the models of the server `name` are loaded. Raises StepError where it ends or a model fails."""
    pid = int((keeping.process.stdout.readline() if keeping.process.stdout else b"") or 0)
    http = f"{ports.host}:{ports.http}"
    deadline = time.monotonic() + plan.patience
    while not health.is_there(http, name):
        if keeping.process.poll() is not None:
            raise _gone(keeping)
        if time.monotonic() > deadline:
            what = f"the Triton server did not answer within {plan.patience:.0f} s"
            raise StepError(what, diagnosis.tail(keeping.text()))
        time.sleep(_POLL_SECONDS)
    states = health.states(http, plan.needs.models, diagnosis.unreadable_models(keeping.text()))
    failed = {name: state for name, state in states.items() if not state.ready}
    if failed:
        raise _failed(failed)
    return Server(
        http, f"{ports.host}:{ports.grpc}", f"{ports.host}:{ports.metrics}", plan.installation.kind,
        health.version(http), plan.installation.stand_in, states, log, pid, keeping,
    )  # fmt: skip


def _gone(keeping: Keeping) -> StepError:
    text = keeping.text()
    lines = diagnosis.tail(text)
    kind = _PortTakenError if diagnosis.port_is_taken(text) else StepError
    what = f"the Triton server ended before it was ready ({diagnosis.ending(keeping.process.returncode)})"
    return kind(what, lines, diagnosis.meaning(lines))


def _failed(states: Mapping[str, ModelState]) -> StepError:
    names = " and ".join(states)
    facts = [f"{name}: {state.reason}" for name, state in states.items()]
    return StepError(f"Triton cannot load {names}", facts, diagnosis.meaning(facts))
