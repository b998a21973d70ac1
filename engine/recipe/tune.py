"""The section `tune` of a recipe: what `recipe tune` searches for, under which bounds, among which values, how long."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Annotated, Any, Literal, Self

from pydantic import AfterValidator, BeforeValidator, Field, WithJsonSchema, model_validator

from engine.recipe.fields import Distinct, Memory, Milliseconds, Number, Size, Text, wrong
from engine.recipe.values import RecipePart
from engine.text import suggestions
from engine.text.display import shown

DEFAULT_TRIALS = 40
"""How many trials a search has whose recipe says neither `trials` nor `budget`."""
LATENCIES = ("p50_ms", "p95_ms", "p99_ms")
SIZE, THROUGHPUT = "size", "throughput"
_UNITS = {"s": 1.0, "m": 60.0, "h": 3600.0}
_LONGEST = 30 * 24 * 3600.0


def _seconds(value: Any) -> float:
    """Return the seconds of a duration such as `10m`."""
    match = re.fullmatch(r"([0-9]{1,9}(?:\.[0-9]{1,6})?) *([smh]?)", str(value).strip())
    if match is None or isinstance(value, bool):
        raise wrong(f"is {shown(str(value))!r}; a duration is meant", "write 10m, 90s or 2h")
    if not match[2]:
        raise wrong(f"is {value}, a duration without a unit", f"write {match[1]}m or {match[1]}s")
    seconds = float(match[1]) * _UNITS[match[2]]
    if not 0 < seconds <= _LONGEST:
        raise wrong(f"is {value}; more than 0 s and at most 720h is meant", "write 10m, 90s or 2h")
    return seconds


def _one_alone(value: Mapping[str, Any]) -> Mapping[str, Any]:
    if len(value) != 1:
        raise wrong(f"names {len(value)} figures; one is meant", "bound the others in `subject_to`")
    return value


_Sizes = Annotated[Mapping[Text, Size], Field(max_length=256)]


def _by_name(*names: str) -> BeforeValidator:
    """Return the validator that makes `{size: {}}` of the short form `size`, an objective without sizes of inputs."""

    def objective(value: Any) -> Any:
        if isinstance(value, str) and value not in names:
            raise wrong(f"cannot be {shown(value)!r}", suggestions.hint(value, names))
        return {value: {}} if isinstance(value, str) else value

    return BeforeValidator(objective)


_Minimized = Annotated[
    Mapping[Literal["size", "p50_ms", "p95_ms", "p99_ms"], _Sizes],
    _by_name(SIZE, *LATENCIES),
    AfterValidator(_one_alone),
]
_Maximized = Annotated[Mapping[Literal["throughput"], _Sizes], _by_name(THROUGHPUT), AfterValidator(_one_alone)]
_Duration = Annotated[float, BeforeValidator(_seconds), WithJsonSchema({"type": "string", "pattern": "^[0-9.]+ *[smh]$"})]
_Share = Annotated[Number, Field(ge=0, le=1)]
_Cosine = Annotated[Number, Field(ge=-1, le=1)]


class TuneBounds(RecipePart):
    """The bounds of a search: accuracies are at least, latencies and the size at most what they say.

    An accuracy is measured and judged by `validate`, where the worst of all samples counts. A latency is measured at
    the sizes of the objective.
    """

    cosine: _Cosine | None = None
    agreement: _Share | None = None
    rank: _Cosine | None = None
    metric: _Share | None = None
    p50_ms: Milliseconds | None = None
    p95_ms: Milliseconds | None = None
    p99_ms: Milliseconds | None = None
    size: Memory | None = None

    @property
    def accuracy(self) -> Mapping[str, float]:
        """The least accuracies by the names that they have in `validate`."""
        return self._stated("cosine", "agreement", "rank", "metric")

    @property
    def limits(self) -> Mapping[str, float]:
        """The greatest latencies in milliseconds, and the greatest size in bytes, by name."""
        return self._stated(*LATENCIES, SIZE)

    def _stated(self, *names: str) -> Mapping[str, float]:
        stated = {name: getattr(self, name) for name in names}
        return {name: value for name, value in stated.items() if value is not None}


class Tune(RecipePart):
    """What `recipe tune` searches for. No key has a row of it, and a build does not read it."""

    budget: _Duration | None = None
    """The seconds of all jobs of the search, by their records."""
    trials: Size | None = None
    minimize: _Minimized | None = None
    maximize: _Maximized | None = None
    subject_to: TuneBounds = TuneBounds.model_construct()
    over: Annotated[
        Mapping[Text, Annotated[tuple[Any, ...], Field(min_length=1, max_length=256), Distinct]],
        Field(max_length=64),
    ] = {}
    """The path of a field, as `--set` takes it -> the values that are tried; empty for what the runtimes offer."""

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        if self.minimize is not None and self.maximize is not None:
            raise wrong("has `minimize` and `maximize`: a search has one objective", "bound the other in `subject_to`")
        if self.minimize is None and self.maximize is None:
            hint = "add `minimize: {p95_ms: {batch: 1, sequence: 128}}`, `minimize: size` or `maximize: throughput`"
            raise wrong("has no objective", hint)
        if self.budget is not None and self.trials is not None:
            raise wrong("has `budget` and `trials`: one of them ends the search", "leave one out")
        return self

    @property
    def figure(self) -> str:
        """The name of the figure that the search is for: `size`, `throughput` or a latency such as `p95_ms`."""
        return next(iter(self.minimize or self.maximize or {}))

    @property
    def sizes(self) -> Mapping[str, int]:
        """The sizes of the axes at which the search measures, as far as the objective says them."""
        return next(iter((self.minimize or self.maximize or {}).values()), {})
