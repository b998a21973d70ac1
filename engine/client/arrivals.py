"""Arrivals: when the requests of an open loop begin, and the points of a sweep as users write them."""

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
    """Return when each request begins, in seconds from the start, `rate` of them a second.

    `constant` has equal gaps; `poisson` draws each gap from the exponential distribution, as independent callers
    arrive: the same seed gives the same plan.
    """
    if arrivals == "constant":
        return [number / rate for number in range(round(rate * seconds))]
    drawn = random.Random(seed)  # noqa: S311 - nothing secret
    moments: list[float] = []
    moment = drawn.expovariate(rate)
    while moment < seconds:
        moments.append(moment)
        moment += drawn.expovariate(rate)
    return moments


def concurrencies(text: str) -> list[int]:
    """Return the points of a sweep: `1,8,32`, `1:32:2x` (doubled each time), `4:16:4` (4 more each time)."""
    return _points(text, int, r"[0-9]+")


def rates(text: str) -> list[float]:
    """Return requests a second: `50,100`, `10:80:2x`, `10:50:20`."""
    return _points(text, float, r"[0-9]+(?:\.[0-9]+)?")


def _points(text: str, number: Callable[[str], _Number], form: str) -> list[_Number]:
    points: list[_Number] = []
    for part in text.split(","):
        found = re.fullmatch(rf"({form})(?::({form}):({form})(x?))?", part.strip())
        if found is None:
            raise UsageError(f"{text!r} is no list of loads", hint="write 1,8,32 or 1:32:2x or 4:16:4")
        first, last = number(found[1]), number(found[2] or found[1])
        step, times = number(found[3] or "1"), bool(found[4])
        if first <= 0 or last < first or step <= (1 if times else 0):
            raise UsageError(f"{part.strip()!r} does not lead from one load to a higher one", hint="write 1:32:2x")
        while first <= last and len(points) <= _MOST_POINTS:
            points.append(first)
            first = first * step if times else first + step
    if len(points) > _MOST_POINTS:
        raise UsageError(f"{text!r} makes more than {_MOST_POINTS} points", hint="take larger steps")
    return points
