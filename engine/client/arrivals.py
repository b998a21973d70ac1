"""Arrivals: the start times of the requests of an open loop, and the points of a load sweep as users write them."""

from __future__ import annotations

import random
import re
from collections.abc import Callable
from typing import Literal, TypeVar

from engine.errors import UsageError

Arrivals = Literal["poisson", "constant"]

_Number = TypeVar("_Number", int, float)
_MOST_POINTS = 100


def planned(rate: float, seconds: float, *, arrivals: Arrivals, seed: int) -> list[float]:
    """Return the start time of each request in seconds, `rate` requests per second.

    With `constant`, the gaps between requests are equal. With `poisson`, each gap is drawn from the exponential
    distribution, as requests of independent clients arrive. The same seed gives the same start times.
    """
    if arrivals == "constant":
        return [number / rate for number in range(round(rate * seconds))]
    generator = random.Random(seed)  # noqa: S311 - nothing secret
    starts: list[float] = []
    start = generator.expovariate(rate)
    while start < seconds:
        starts.append(start)
        start += generator.expovariate(rate)
    return starts


def concurrencies(text: str) -> list[int]:
    """Return numbers of concurrent clients: `1,8,32`, `1:32:2x` (doubled each time), `4:16:4` (4 more each time)."""
    return _points(text, int, r"[0-9]+")


def rates(text: str) -> list[float]:
    """Return request rates, in requests per second: `50,100`, `10:80:2x`, `10:50:20`."""
    return _points(text, float, r"[0-9]+(?:\.[0-9]+)?")


def _points(text: str, number: Callable[[str], _Number], form: str) -> list[_Number]:
    points: list[_Number] = []
    for part in text.split(","):
        match = re.fullmatch(rf"({form})(?::({form}):({form})(x?))?", part.strip())
        if match is None:
            raise UsageError(f"{text!r} is no list of loads", hint="write 1,8,32 or 1:32:2x or 4:16:4")
        first, last = number(match[1]), number(match[2] or match[1])
        step, multiplies = number(match[3] or "1"), bool(match[4])
        if first <= 0:
            raise UsageError(f"a load of {match[1]} sends no requests", hint="the smallest is 1, as in 1,8,32")
        if last < first or step <= (1 if multiplies else 0):
            raise UsageError(f"{part.strip()!r} does not lead from one load to a higher one", hint="write 1:32:2x")
        while first <= last and len(points) <= _MOST_POINTS:
            points.append(first)
            first = first * step if multiplies else first + step
    if len(points) > _MOST_POINTS:
        raise UsageError(f"{text!r} makes more than {_MOST_POINTS} points", hint="take larger steps")
    return points
