"""Bisection: the smallest set of candidates that a test needs, found with few tests."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

_FIRST = (2, 16)
"""The lengths of the first prefixes that are tested: where suspicion is right, few candidates are needed."""

Kept = frozenset[str]


@dataclass(frozen=True)
class Bisected:
    """The answer of a bisection.

    `needed` is None where the test fails even with all candidates; it is empty where the test needs none. Otherwise the
    test passes with `needed`, and fails without any one of them: both were tested, whatever the test is like.
    """

    needed: tuple[str, ...] | None
    evaluations: int
    contradiction: tuple[Kept, Kept] | None = None
    """A set with which the test passed, and a larger one with which it failed; None where there are no such sets.

    Another set, and a smaller one, may pass, too, if the test is like that.
    """


def smallest(candidates: Sequence[str], passes: Callable[[Kept], bool]) -> Bisected:
    """Return a smallest set with which `passes` is true; `candidates` are in the order of suspicion.

    If every set passes that has a passing set in it, and k of n candidates are needed, then the test is called at most
    k (ceil(log2 n) + 2) + 3 times; O(k log k) times where the order has the needed ones first. The same set is never
    tested twice.
    """
    tested: dict[Kept, bool] = {}

    def test(kept: Sequence[str]) -> bool:
        those = frozenset(kept)
        if those not in tested:
            tested[those] = passes(those)
        return tested[those]

    needed: tuple[str, ...] | None = None
    if test(()):
        needed = ()
    elif test(candidates):
        needed = _without_idle(_search(candidates, test), test)
    return Bisected(needed, len(tested), _contradiction(tested))


def _search(order: Sequence[str], test: Callable[[Sequence[str]], bool]) -> list[str]:
    """Return a set that passes. Its members are the last ones of the shortest prefixes that pass with those before."""
    chosen: list[str] = []
    end = len(order)  # the prefix of this length passes together with what is chosen
    while not chosen or not test(chosen):
        low = 0  # the prefix of this length fails
        for length in () if chosen else _FIRST:
            if low < length < end:
                if test(order[:length]):
                    end = length
                else:
                    low = length
        while end - low > 1:
            middle = (low + end) // 2
            if test([*chosen, *order[:middle]]):
                end = middle
            else:
                low = middle
        end -= 1
        chosen.append(order[end])
    return chosen


def _without_idle(chosen: Sequence[str], test: Callable[[Sequence[str]], bool]) -> tuple[str, ...]:
    """Return the members of a passing set without which it fails. If the test is monotone, these are all."""
    needed = list(chosen)
    while idle := next((each for each in needed if test([other for other in needed if other != each])), None):
        needed.remove(idle)
    return tuple(needed)


def _contradiction(tested: dict[Kept, bool]) -> tuple[Kept, Kept] | None:
    passing = [kept for kept, passed in tested.items() if passed]
    failing = [kept for kept, passed in tested.items() if not passed]
    return next(((less, more) for less in passing for more in failing if less < more), None)
