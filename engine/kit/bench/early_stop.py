"""Early stop: a contestant of a race that is surely slower than the baseline allows is timed no further."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

_MARGINS: Mapping[int, float] = {4: 1.25, 7: 1.0}
"""After how many rounds a contestant is looked at -> how many times slower than the cut each round must be."""


def is_cut(slower: Sequence[float], cut: float) -> bool:
    """Tell whether a contestant is cut after the rounds so far.

    `slower` says for each round how many times slower the contestant is than the baseline; it may be `cut` times
    slower. It is cut after 4 rounds if each of them is 25 % above `cut`, and after 7 rounds if each is above `cut`.

    This is a sign test, so it holds for noise of any distribution. Noise makes a round slower or faster equally often:
    a contestant inside the cut has 7 rounds above it with a probability below 1/128, however strong the noise is. A
    contestant 3 % inside is cut after 4 rounds only if noise adds 29 % to each of them, which noise with a standard
    deviation of 40 % does with a probability of 0.5 %. Drift of the machine is no noise here: both models of a round
    have it alike, and the one that comes first changes from round to round.
    """
    margin = _MARGINS.get(len(slower))
    return margin is not None and min(slower) > cut * margin
