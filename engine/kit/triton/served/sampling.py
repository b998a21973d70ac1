"""Sampling: draws the next token of a row at random, by a request's parameters. Lies beside model.py."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

Array = Any
_SEEDS = ("seed", "random_seed")


@dataclass(frozen=True)
class Sampling:
    """The parameters of one request, with the names and rules of transformers' `generate()`.

    Only the parameters of the request count: without `top_k` and `top_p`, every token may be drawn.
    """

    temperature: float = 1.0
    top_k: int | None = None
    top_p: float | None = None
    seed: int | None = None
    """Rows with one seed draw the same numbers; None for numbers that nobody can repeat."""
    repetition_penalty: float | None = None
    """None for the penalty of the package."""
    draws: bool = False
    """Whether tokens are drawn; otherwise the token with the largest score is taken."""

    def probabilities(self, scores: Array) -> Array:
        """Return the probability of each token, float64 [vocabulary], given the scores after all rules."""
        import numpy as np

        changed = np.asarray(scores, dtype=np.float64) / self.temperature
        if self.top_k is not None and self.top_k < len(changed):
            least = np.partition(changed, -self.top_k)[-self.top_k]
            changed = np.where(changed < least, -np.inf, changed)
        shares = np.exp(changed - changed.max())
        shares /= shares.sum()
        if self.top_p is not None and self.top_p < 1:
            order = np.argsort(-shares, kind="stable")
            before = np.cumsum(shares[order]) - shares[order]
            kept = np.zeros(len(shares), dtype=bool)
            kept[order] = before < self.top_p  # the first token is always kept
            shares = np.where(kept, shares, 0)
            shares /= shares.sum()
        return shares

    def sampler(self, row: int) -> Sampler | None:
        """Return what draws the tokens of a row of the request; None for the token with the largest score."""
        return Sampler(self, row) if self.draws else None


class Sampler:
    """Draws the tokens of one row."""

    def __init__(self, sampling: Sampling, row: int) -> None:
        """`row` is the number of the row in its request, so that rows with equal texts get different answers."""
        import numpy as np

        self._sampling = sampling
        self._generator = np.random.default_rng(None if sampling.seed is None else [sampling.seed, row])

    def __call__(self, scores: Array) -> int:
        """Return the id of a token, drawn by the probabilities of the scores."""
        import numpy as np

        ends = np.cumsum(self._sampling.probabilities(scores))
        drawn = self._generator.random() * ends[-1]
        return int(np.searchsorted(ends, drawn, side="right"))


def read(parameters: Mapping[str, Any]) -> Sampling:
    """Return the sampling that the parameters of a request describe; parameters of other names are left alone.

    A temperature or `do_sample` turns drawing on, and so do `top_k`, `top_p` and a seed; `temperature: 0` and
    `do_sample: false` turn it off. Raises ValueError for a value that cannot be.
    """
    seeds = [name for name in _SEEDS if name in parameters]
    if len(seeds) > 1:
        raise ValueError(f"{' and '.join(seeds)}: a request has one seed")
    temperature = _number(parameters, "temperature", least=0)
    top_k, top_p = _whole(parameters, "top_k", least=1), _number(parameters, "top_p", least=0, most=1)
    if top_p == 0:
        raise ValueError("top_p: 0 allows no token; use temperature: 0 for the most likely token")
    seed = _whole(parameters, seeds[0], least=0) if seeds else None
    penalty = _number(parameters, "repetition_penalty", least=0)
    if penalty == 0:
        raise ValueError("repetition_penalty: it is above 0; 1 is no penalty")
    draws = _flag(parameters, "do_sample")
    if draws is None:
        draws = any(each is not None for each in (temperature, top_k, top_p, seed))
    return Sampling(temperature or 1.0, top_k, top_p, seed, penalty, draws and temperature != 0)


NAMES: Sequence[str] = ("temperature", "top_k", "top_p", *_SEEDS, "repetition_penalty", "do_sample")
"""The names of the parameters that `read` follows."""


def _number(parameters: Mapping[str, Any], name: str, *, least: float, most: float = float("inf")) -> float | None:
    """Return a parameter as a number. Raises ValueError for another value."""
    if name not in parameters:
        return None
    value = parameters[name]
    try:
        number = float("nan") if isinstance(value, bool) else float(value)
    except (TypeError, ValueError):
        number = float("nan")
    if not least <= number <= most or number == float("inf"):
        upper = "" if most == float("inf") else f" and at most {most:g}"
        raise ValueError(f"{name}: {value!r} is no number of at least {least:g}{upper}")
    return number


def _whole(parameters: Mapping[str, Any], name: str, *, least: int) -> int | None:
    number = _number(parameters, name, least=least)
    if number is not None and number != int(number):
        raise ValueError(f"{name}: {parameters[name]!r} is no whole number")
    return None if number is None else int(parameters[name]) if isinstance(parameters[name], int) else int(number)


def _flag(parameters: Mapping[str, Any], name: str) -> bool | None:
    value = parameters.get(name)
    if value is None or isinstance(value, bool):
        return value
    if str(value).lower() in {"true", "false"}:
        return str(value).lower() == "true"
    raise ValueError(f"{name}: {value!r} is neither true nor false")
