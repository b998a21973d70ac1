"""Worker: a process that opens one contender in the environment of its tool, and does what lines of JSON on stdin say.

Each request names what to `do`: open, prepare, time or answer. Each reply is a line of JSON on stdout.
"""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Callable
from typing import Any

import numpy as np

from frontier.contenders import Call, Contender, Opened, opened

_SETTLING = 2
"""Calls at the start of a turn that are not timed, because the caches still hold another model's weights."""


class Worker:
    """One open contender, and its calls by shape."""

    def __init__(self) -> None:
        self._calls: dict[str, Call] = {}

    def open(self, *, contender: dict[str, Any], threads: int) -> None:
        """Open the contender."""
        self._model: Opened = opened(Contender(**contender), threads)

    def prepare(self, *, shape: str, inputs: str, seconds: float) -> None:
        """Prepare the calls for the inputs of a shape, and call the model for some seconds."""
        self._calls[shape] = self._model.prepare(dict(np.load(inputs)))
        took(self._calls[shape], seconds, time.perf_counter)

    def time(self, *, shape: str, seconds: float, clock: str) -> list[float]:
        """Return the milliseconds of calls for some seconds; at least one call is timed."""
        of = time.process_time if clock == "cpu" else time.perf_counter
        for _ in range(_SETTLING):
            settled = took(self._calls[shape], 0, of)
            if settled[0] > seconds / 2 * 1e3:
                break
        return took(self._calls[shape], seconds, of)

    def answer(self, *, inputs: str, out: str) -> None:
        """Write the first output of the model for each numbered call of a file of inputs (`NUMBER/NAME` -> array)."""
        calls: dict[str, dict[str, np.ndarray]] = {}
        for key, array in np.load(inputs).items():
            number, name = key.split("/", 1)
            calls.setdefault(number, {})[name] = array
        np.savez(out, **{number: next(iter(self._model.run(call).values())) for number, call in calls.items()})


def took(call: Call, seconds: float, clock: Callable[[], float]) -> list[float]:
    """Call at least once and until `seconds` are over; return the milliseconds of each call."""
    times, end = [], clock() + seconds
    while not times or clock() < end:
        began = clock()
        call()
        times.append((clock() - began) * 1e3)
    return times


def main() -> None:
    """Serve requests until stdin ends. What libraries print goes to stderr."""
    replies = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    worker = Worker()
    for line in sys.stdin:
        given = json.loads(line)
        try:
            reply = {"reply": getattr(worker, given.pop("do"))(**given)}
        except Exception as error:  # noqa: BLE001 - one contender's failure must not end the contest
            words = str(error).strip().splitlines() or [""]
            reply = {"error": f"{type(error).__name__}: {words[0]}"[:300]}
        print(json.dumps(reply), file=replies, flush=True)


if __name__ == "__main__":
    main()
