"""Proposals: the order in which a search asks for points; the same answers give the same order."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from engine.errors import UsageError
from engine.text import distribution
from engine.tuning.space import Choices, Space, ident

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
        self._study = optuna.create_study(sampler=optuna.samplers.TPESampler(seed=_SEED, multivariate=False))
        self._ignored = optuna.trial.TrialState.FAIL
        self._space = space
        self._seen: set[str] = set()
        self._rest = space.every()
        self._costs: list[tuple[float, Choices]] = []

    def __iter__(self) -> Iterator[tuple[Point, Choices | None]]:
        """Yield every point once, with the choices to tell the answer of; None for a point outside the space."""
        written: Point = {}
        self._seen.add(ident(written))
        yield written, next((each for each in self._space.first() if not self._space.point_of(each)), None)
        for choices in self._space.first():
            if (point := self._new(choices)) is not None:
                yield point, choices
        while True:
            proposal = self._sampled() or self._near() or self._next()
            if proposal is None:
                return
            yield proposal

    def tell(self, choices: Choices | None, cost: float) -> None:
        """Tell the sampler how good a point is: the smaller the cost, the better."""
        if choices is not None:
            self._costs.append((cost, choices))
            self._study.enqueue_trial(dict(choices))
            trial = self._study.ask()
            self._chosen(trial)
            self._study.tell(trial, cost)

    def _new(self, choices: Choices) -> Point | None:
        """Return the point of choices; None for one that was asked for."""
        point = self._space.point_of(choices)
        known = len(self._seen)
        self._seen.add(ident(point))
        return point if len(self._seen) > known else None

    def _sampled(self) -> tuple[Point, Choices] | None:
        for _ in range(_MOST_REPEATS):
            trial = self._study.ask()
            choices = self._chosen(trial)
            self._study.tell(trial, state=self._ignored)  # `tell` adds it again, with its cost
            if (point := self._new(choices)) is not None:
                return point, choices
        return None

    def _near(self) -> tuple[Point, Choices] | None:
        """Return a new point that differs in one knob from the best point that has such a neighbour."""
        for _, best in sorted(self._costs, key=lambda each: each[0]):
            for name, count in self._space.counts(best).items():
                for index in range(count):
                    choices = {**best, name: index}
                    if (point := self._new(choices)) is not None:
                        return point, choices
        return None

    def _next(self) -> tuple[Point, Choices] | None:
        return next(((point, each) for each in self._rest if (point := self._new(each)) is not None), None)

    def _chosen(self, trial: Trial) -> Choices:
        """Return the choices of a trial of optuna; knobs whose conditions do not hold have none."""
        self._space.point(lambda name, count: int(trial.suggest_categorical(name, range(count))))
        return dict(trial.params)
