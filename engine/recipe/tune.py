"""The section `tune` of a recipe: what `recipe tune` searches for, under which bounds, among which values, how long."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Annotated, Any, Literal, Self, get_args

from pydantic import BeforeValidator, Field, model_validator

from engine.recipe.fields import Distinct, Memory, Milliseconds, Number, Size, Text, wrong
from engine.recipe.values import RecipePart
from engine.text import suggestions
from engine.text.display import shown

SIZE, THROUGHPUT = "size", "throughput"
_UNITS = {"s": 1.0, "m": 60.0, "h": 3600.0}


def _seconds(value: Any) -> float:
    """Return the seconds of a duration such as `10m`. Raises pydantic's error."""
    match = re.fullmatch(r"([0-9]{1,6}(?:\.[0-9]{1,6})?) *([smh])", str(value).strip())
    if match is None or not float(match[1]):
        raise wrong(f"is {shown(str(value))!r}; a duration is meant", "write 10m, 90s or 2h")
    return float(match[1]) * _UNITS[match[2]]


_Duration = Annotated[float, BeforeValidator(_seconds, json_schema_input_type=str)]
_Share = Annotated[Number, Field(ge=0, le=1)]
_Likeness = Annotated[Number, Field(ge=-1, le=1)]
_Values = Annotated[tuple[Any, ...], Field(min_length=1, max_length=256), Distinct]
_Smallest = Literal["size", "p50_ms", "p95_ms"]
_Largest = Literal["throughput"]
_Sizes = Annotated[Mapping[Text, Size], Field(max_length=256)]
_One = Field(min_length=1, max_length=1)


def _by_name(names: Any) -> BeforeValidator:
    """Return the validator that makes `{size: {}}` of the short form `size`, an objective without sizes of inputs."""

    def objective(value: Any) -> Any:
        if isinstance(value, str) and value not in get_args(names):
            raise wrong(f"cannot be {shown(value)!r}", suggestions.hint(value, get_args(names)))
        return {value: {}} if isinstance(value, str) else value

    return BeforeValidator(objective, json_schema_input_type=names | Annotated[Mapping[names, _Sizes], _One])


class TuneBounds(RecipePart):
    """The bounds of a search: accuracies are at least, latencies and the size at most what they say.

    An accuracy is measured and judged by `validate`, where the worst of all samples counts. A latency is measured at
    the sizes of the objective.
    """

    cosine: _Likeness | None = None
    agreement: _Share | None = None
    rank: _Likeness | None = None
    metric: _Share | None = None
    p50_ms: Milliseconds | None = None
    p95_ms: Milliseconds | None = None
    p99_ms: Milliseconds | None = None
    size: Memory | None = None


class Tune(RecipePart):
    """What `recipe tune` searches for. No key has a row of it, and a build does not read it."""

    trials: Size | None = None
    """The most trials; None stands for the default where there is no budget."""
    budget: _Duration | None = None
    """The seconds of all jobs of the search, by their records, after which no further trial begins."""
    minimize: Annotated[Mapping[_Smallest, _Sizes], _One, _by_name(_Smallest)] | None = None
    maximize: Annotated[Mapping[_Largest, _Sizes], _One, _by_name(_Largest)] | None = None
    subject_to: TuneBounds = TuneBounds.model_construct()
    over: Annotated[Mapping[Text, _Values], Field(max_length=64)] = {}
    """The path of a field, as `--set` takes it -> the values that are tried; empty for what the runtimes offer."""

    @model_validator(mode="after")
    def _one_objective(self) -> Self:
        if self.minimize is not None and self.maximize is not None:
            raise wrong("has `minimize` and `maximize`: a search has one objective", "bound the other in `subject_to`")
        if self.minimize is None and self.maximize is None:
            hint = "add `minimize: {p95_ms: {batch: 1, sequence: 128}}`, `minimize: size` or `maximize: throughput`"
            raise wrong("has no objective", hint)
        return self

    @property
    def objective(self) -> tuple[str, Mapping[str, int]]:
        """The figure that the search is for, and the sizes of axes at which it is measured, as far as they are said."""
        [stated] = (self.minimize or self.maximize or {}).items()
        return stated
