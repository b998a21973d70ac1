"""Watch: asks a running server again and again whether its models still answer."""

from __future__ import annotations

import threading
import time
from collections.abc import Mapping

from engine.kit.triton.served.probe import DEAD, Probe

_INTERVAL_SECONDS = 0.5
_TIMEOUT = 2.0
"""How many seconds one request of a probe may take. A request that a dead process holds is late, and the next tells."""
_LATE_PROBES = 15
"""How many probes in a row must fail for another reason than a dead process: a busy machine is late for a while."""


class ServerWatch:
    """A thread that probes a server until a model stops answering. The thread ends with the program."""

    def __init__(self, url: str) -> None:
        """Begin to watch the server at `url`, its address over HTTP."""
        self.dead: Mapping[str, str] = {}
        """The models that stopped answering, each with the reason; empty as long as all models answer."""
        self._probe = Probe(url, _TIMEOUT)
        threading.Thread(target=self._run, daemon=True, name="watch").start()

    def _run(self) -> None:
        failures = 0
        while not self.dead:
            time.sleep(_INTERVAL_SECONDS)
            silent = self._probe.dead()
            failures = failures + 1 if silent else 0
            if any(DEAD in reason for reason in silent.values()) or failures >= _LATE_PROBES:
                silent = self._probe.dead() or silent  # names the models, too, that had answered before a process ended
                self.dead = {name or "the server": reason for name, reason in silent.items()}
