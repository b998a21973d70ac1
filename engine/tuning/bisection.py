"""Bisection: the smallest set of candidates that a test needs, found with few tests."""

from __future__ import annotations

from collections.abc import Callable, Sequence

_FIRST = (2, 16)
"""The lengths of the first prefixes that are tested: where suspicion is right, few candidates are needed."""

Kept = frozenset[str]


def smallest(candidates: Sequence[str], passes: Callable[[Kept], bool], so_far: list[str]) -> Kept | None:
    """Return a smallest set with which `passes` is true; `candidates` are in the order of suspicion.

    Returns None where the test fails even with all candidates. Else the test passes with the answer, and fails without
    any one of its members: both were tested, whatever the test is like. If every set passes that has a passing set in
    it, and k of n candidates are needed, then at most k (ceil(log2 n) + 2) + 3 sets are tested; O(k log k) sets where
    the order has the needed ones first. `passes` is asked again for the same set, and should remember its answer.
    `so_far`, an empty list, gets each needed one as soon as it is known.
    """
    if not passes(frozenset(candidates)):
        return None
    end = len(candidates)  # the prefix of this length passes together with what is found
    while end and not (so_far and passes(frozenset(so_far))):
        low = 0  # the prefix of this length fails
        firsts = [] if so_far else [length for length in _FIRST if length < end]
        while end - low > 1:
            middle = firsts.pop(0) if firsts else (low + end) // 2
            if passes(frozenset([*so_far, *candidates[:middle]])):
                end, firsts = middle, []
            else:
                low = middle
        end -= 1
        so_far.append(candidates[end])  # the last one of the shortest prefix that passes
    needed = frozenset(so_far)
    while (idle := next((each for each in sorted(needed) if passes(needed - {each})), None)) is not None:
        needed -= {idle}  # never where the test is monotone
    return needed
