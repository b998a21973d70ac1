"""Few samples: what bounds that a small number of samples keep do not say about other inputs."""

from __future__ import annotations

from collections.abc import Mapping

from engine.kit.accuracy.report import Work

_OWN = ("sample", "tensors")
"""The kinds of cases that come from a recipe's own samples."""
_DOUBT = 0.05
"""One minus the confidence, and the share of inputs from which a report has a note."""
_EXACT = frozenset({"fp32", "fp64"})


def note(kinds: Mapping[str, int], work: Work | None) -> tuple[str, ...]:
    """Return a note where so few samples say little about the rounding of a model on other inputs; else nothing.

    If a share p of the inputs missed a bound, n independent samples would all keep it with a probability of (1 - p)^n.
    So n samples that keep a bound rule out, with 95 % confidence, only shares above 1 - 0.05^(1/n). `kinds` is the
    number of cases by kind. A model that computes in fp32 alone has no note, as its rounding depends little on inputs.
    """
    count = sum(kinds.get(kind, 0) for kind in _OWN)
    if not count or work is None or set(work.shares) <= _EXACT:
        return ()
    share = 1 - _DOUBT ** (1 / count)
    if share < _DOUBT:
        return ()
    return (f"{count} samples that keep a bound: up to {share:.0%} of other inputs may miss it (95 % confidence)",)
