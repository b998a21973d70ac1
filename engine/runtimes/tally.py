"""Tally: the multiplications of a run in each precision, and the number of operators of each kind in each precision."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping


class Tally(dict[str, int]):
    """The name of each precision -> the number of multiplications in this precision; equal to a plain mapping.

    `operators` maps the kind of an operator, such as "Conv", to the number of its operators in each precision.
    """

    def __init__(self) -> None:
        super().__init__()
        self.operators: dict[str, Counter[str]] = {}

    def add(self, kind: str, precision: str, multiplications: int, *, seen: bool = False) -> None:
        """Count one operator; one that was `seen` in an earlier run counts its multiplications only."""
        self[precision] = self.get(precision, 0) + multiplications
        if not seen:
            self.operators.setdefault(kind, Counter())[precision] += 1


def operators(counts: Mapping[str, int]) -> Mapping[str, Mapping[str, int]]:
    """Return the operators of a tally; none for a plain mapping, as the runtimes of other packages may return."""
    return counts.operators if isinstance(counts, Tally) else {}
