"""Health: whether the server that was started answers, the states of its models, and whether they go on answering."""

from __future__ import annotations

import threading
import time
from collections.abc import Mapping, Sequence

from engine.client.client import Client
from engine.client.model_metadata import ModelState
from engine.errors import StepError
from engine.kit.triton.served.probe import DEAD, Probe

_TIMEOUT = 5.0
"""Seconds to wait for a response of the server; few are enough, because the server runs on this machine."""
_INTERVAL_SECONDS = 0.5
_PROBE_SECONDS = 2.0
"""How many seconds one request of a probe may take. A request that a dead process holds is late, and the next tells."""
_LATE_PROBES = 15
"""How many probes in a row must fail for another reason than a dead process: a busy machine is late for a while."""


def is_there(address: str, name: str) -> bool:
    """Return whether the server called `name`, and no other, answers over HTTP at ADDRESS:PORT."""
    try:
        with _client(address) as client:
            return client.server_metadata().get("name") == name
    except (StepError, TypeError, ValueError):  # the response of another program may have any form
        return False


def version(address: str) -> str:
    """Return Triton's version. Raises StepError."""
    with _client(address) as client:
        return str(client.server_metadata().get("version", ""))


def states(address: str, expected: Sequence[str], unread: Mapping[str, str]) -> dict[str, ModelState]:
    """Return the models' states; `unread` has the log's reasons for those that were not read. Raises StepError."""
    with _client(address) as client:
        states = client.states()
    missing = {
        name: ModelState("UNAVAILABLE", unread.get(name, "the server does not list it"))
        for name in expected
        if name not in states or not states[name].state
    }
    return states | missing


def _client(address: str) -> Client:
    return Client(f"http://{address}", timeout=_TIMEOUT)


class ServerWatch:
    """Two threads that watch a server until a model stops answering: the threads end with the program.

    One thread looks at the server's Python processes, because a dead process holds the requests of a probe for seconds
    while clients wait for it, too. The other thread sends requests, which also shows a process that runs and hangs.
    """

    def __init__(self, url: str, server: int) -> None:
        """Begin to watch the server at `url`, its address over HTTP; `server` is the id of its process."""
        self.dead: Mapping[str, str] = {}
        """The models that stopped answering, each with the reason; empty as long as all models answer."""
        self._probe = Probe(url, _PROBE_SECONDS, server)
        for each in (self._look, self._ask):
            threading.Thread(target=each, daemon=True, name=f"watch {each.__name__}").start()

    def _look(self) -> None:
        """Look at the processes; twice, as Triton needs a moment to take notice of a process that it ends itself."""
        before: dict[str, str] = {}
        while not self.dead:
            time.sleep(_INTERVAL_SECONDS)
            now = self._probe.dead_processes()
            if lasting := {model: reason for model, reason in now.items() if before.get(model) == reason}:
                self.dead = lasting
            before = now

    def _ask(self) -> None:
        failures = 0
        while not self.dead:
            time.sleep(_INTERVAL_SECONDS)
            silent = self._probe.dead()
            failures = failures + 1 if silent else 0
            if not self.dead and (any(DEAD in reason for reason in silent.values()) or failures >= _LATE_PROBES):
                silent = self._probe.dead() or silent  # names the models, too, that had answered before a process ended
                self.dead = {name or "the server": reason for name, reason in silent.items()}
