"""Regret: which of several candidates loses least in its worst case, by measurements of several cases."""

from __future__ import annotations

from collections.abc import Mapping

from engine.kit.bench import stats
from engine.kit.choice.candidates import Lead, Timed


def leads(candidate: Timed, over: Timed) -> tuple[Lead, ...]:
    """Return for each case how many times faster `candidate` is: the median of the rounds' ratios."""
    per_case = []
    for mine, theirs in zip(candidate.latencies, over.latencies, strict=True):
        ratios = [other / own for own, other in zip(mine.rounds_ms, theirs.rounds_ms, strict=True)]
        per_case.append(Lead(round(stats.median(ratios), stats.RATIO_DIGITS), stats.rounded_interval(ratios)))
    return tuple(per_case)


def of(candidate: Timed, others: Mapping[str, Timed]) -> float:
    """Return how many times slower a candidate is than another one in the case that is worst for it; 1 for never.

    Only what lies beyond the noise counts: a case where the whole confidence interval of the other's lead is above 1.
    """
    worst = [lead.ratio for other in others.values() for lead in leads(other, candidate) if lead.is_sure]
    return max(worst, default=1.0)


def least(candidates: Mapping[str, Timed], default: str) -> str:
    """Return the name of the candidate whose worst case is the least bad; the default where another is no better.

    So a candidate that is never slower beyond the noise is kept before one that sometimes is. Where each of them is
    sometimes slower, users of the kept one lose as little as possible, whichever case is theirs.
    """
    regrets = {
        name: of(each, {other: timed for other, timed in candidates.items() if other != name})
        for name, each in candidates.items()
    }
    best = min(regrets.values())
    return default if regrets[default] <= best else min(regrets, key=lambda name: regrets[name])
