"""Proposals: the order in which a search asks for points; the same answers give the same order."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain
from typing import TYPE_CHECKING

from engine.errors import UsageError
from engine.text import distribution
from engine.tuning.result import in_words
from engine.tuning.space import Choices, Space

if TYPE_CHECKING:
    from optuna.trial import Trial

    from engine.tuning.trials import Point

_SEED = 0
_MOST_REPEATS = 4
"""After so many proposals of points that are known, a neighbour of the best point so far is taken."""


class Proposals:
    """Asks for each point of a space once: first the trials of every search, then those of optuna's seeded sampler."""

    def __init__(self, space: Space) -> None:
        """Raise UsageError where optuna is not installed."""
        try:
            import optuna
        except ImportError:
            what = "`recipe tune` needs optuna, which is not installed"
            raise UsageError(what, hint=distribution.install("tune")) from None
        optuna.logging.set_verbosity(optuna.logging.WARNING)
        self._study = optuna.create_study(sampler=optuna.samplers.TPESampler(seed=_SEED))
        self._ignored = optuna.trial.TrialState.FAIL
        self._space = space
        self._known: set[str] = set()
        self._costs: list[tuple[float, Choices]] = []

    def __iter__(self) -> Iterator[tuple[Point, Choices | None]]:
        """Yield every point once, with the choices to tell the cost of; None for a point outside the space."""
        self._known.add(in_words({}))
        yield {}, None if self._space.point_of({}) else {}
        yield from filter(None, map(self._new, self._space.first()))
        while proposal := next(filter(None, map(self._new, chain(self._sampled(), self._near()))), None):
            yield proposal

    def tell(self, choices: Choices | None, cost: float) -> None:
        """Tell the sampler how good a point is: the smaller the cost, the better."""
        if choices is not None:
            self._costs.append((cost, choices))
            self._study.enqueue_trial({**self._space.defaults, **choices})
            trial = self._study.ask()
            self._chosen(trial)
            self._study.tell(trial, cost)

    def _new(self, choices: Choices) -> tuple[Point, Choices] | None:
        """Return the point of choices with them; None for one that was asked for."""
        point = self._space.point_of(choices)
        known = len(self._known)
        self._known.add(in_words(dict(sorted(point.items()))))
        return (point, choices) if len(self._known) > known else None

    def _sampled(self) -> Iterator[Choices]:
        """Yield what the sampler proposes, which may be known."""
        for _ in range(_MOST_REPEATS):
            trial = self._study.ask()
            choices = self._chosen(trial)
            self._study.tell(trial, state=self._ignored)  # `tell` adds it again, with its cost
            yield choices

    def _near(self) -> Iterator[Choices]:
        """Yield the neighbours of the points so far, of the best one first: in the end these are all points."""
        for _, choices in sorted(self._costs, key=lambda each: each[0]):
            yield from self._space.neighbours(choices)

    def _chosen(self, trial: Trial) -> Choices:
        """Return the choices of a trial of optuna; knobs whose conditions do not hold have none."""
        self._space.point(lambda name, count: int(trial.suggest_categorical(name, range(count))))
        return dict(trial.params)
