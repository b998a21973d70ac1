"""Seats: long-lived processes that hold one contender each, asleep except in their turn."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
from dataclasses import asdict
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import recipe_program as program

from frontier.contenders import Contender

_HERE = Path(__file__).resolve().parent.parent
_SHOWN = 300
LIMIT = 900.0
"""Seconds that a request may take: a compiler of a peer may be slow, and must not stop the contest."""


class SeatError(Exception):
    """A contender cannot be opened or called; the text is the reason."""


class Seat:
    """A context manager: a process with an open contender, in the environment of the contender's tool."""

    def __init__(self, contender: Contender, threads: int, folder: Path) -> None:
        self.name, self._log = contender.name, folder / "worker.log"
        self._open = {"do": "open", "contender": asdict(contender), "threads": threads}
        self._python = contender.python or sys.executable

    def __enter__(self) -> Self:
        """Start the process and open the contender. Raises SeatError."""
        caches = {"TORCHINDUCTOR_CACHE_DIR": str(self._log.parent / "inductor"), "HF_HUB_OFFLINE": "1"}
        try:
            with self._log.open("wb") as log:
                self._process = subprocess.Popen(
                    [self._python, "-m", "frontier.worker"],
                    env={**program.environment(_HERE), **caches},
                    cwd=self._log.parent,
                    stdin=subprocess.PIPE,
                    stdout=subprocess.PIPE,
                    stderr=log,
                    text=True,
                    start_new_session=True,
                )
        except OSError as error:
            raise SeatError(str(error)) from error
        try:
            self.ask(**self._open)
        except SeatError:
            self.__exit__(None, None, None)
            raise
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        """End the process and the processes that it started."""
        self._kill()
        self._process.communicate()

    @property
    def pid(self) -> int:
        """The number of the process."""
        return self._process.pid

    def ask(self, *, limit: float = LIMIT, **request: Any) -> Any:
        """Return the reply to a request. Raises SeatError if it fails or takes longer than `limit` seconds."""
        watchdog = threading.Timer(limit, self._kill)
        watchdog.daemon = True
        watchdog.start()
        try:
            self._process.stdin.write(json.dumps(request) + "\n")
            self._process.stdin.flush()
            line = self._process.stdout.readline()
        except BrokenPipeError:
            line = ""
        late = watchdog.finished.is_set()
        watchdog.cancel()
        if not line:
            ended = self._log.read_text("utf-8", "replace").strip().splitlines()[-1:]
            raise SeatError(f"stopped after {limit:.0f} s" if late else " ".join(["ended:", *ended])[:_SHOWN])
        reply = json.loads(line)
        if "error" in reply:
            raise SeatError(reply["error"])
        return reply["reply"]

    def _kill(self) -> None:
        if self._process.poll() is None:
            os.killpg(self._process.pid, signal.SIGKILL)
