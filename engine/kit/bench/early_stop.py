"""Early stop: a contestant of a race that is surely slower than the baseline allows is timed no further."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

_MARGINS: Mapping[int, float] = {3: 1.15, 5: 1.0}
"""After how many rounds a contestant is looked at -> how many times slower than the cut each round must be."""


def is_cut(slower: Sequence[float], cut: float) -> bool:
    """Tell whether a contestant is cut after the rounds so far.

    `slower` says for each round how many times slower the contestant is than the baseline; it may be `cut` times
    slower. It is cut after 3 rounds if each of them is 15 % above `cut`, and after 5 rounds if each is above `cut`.

    This is a sign test, which knows nothing of how noise is distributed. A contestant that is 3 % inside the cut is cut
    after 5 rounds only if noise makes each of them 3 % slower. Rounds whose noise has a standard deviation of 10 % do
    so with probability 0.38 each, and all five with 0.8 %; with 5 %, it is 0.2 %. Drift of the machine is not noise
    here: both models of a round have it alike.
    """
    margin = _MARGINS.get(len(slower))
    return margin is not None and min(slower) > cut * margin
