"""Shape values: the values of inputs that a profile states, because they are sizes of other tensors."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Self

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, model_validator

from engine.recipe.fields import EXTENTS, Text, as_list, holds_values, wrong

_Value = Annotated[int, Field(strict=True, ge=-(2**31), le=2**31 - 1)]
"""A value of a shape tensor. It may be negative, as the -1 of a Reshape; TensorRT 10.0 takes 32 bits."""
_List = Annotated[tuple[_Value, ...], Field(min_length=1, max_length=64)]
_EXAMPLE = "as in [[1, 16], [4, 16], [8, 16]]: min, opt and max"


def _spread(value: Any) -> Any:
    """Return {min, opt, max} for a list of three lists. Any value but a list is returned unchanged."""
    if not isinstance(value, list | tuple):
        return value
    if len(value) != len(EXTENTS):
        raise wrong(f"states the values of an input, and has {len(value)} of three lists", _EXAMPLE)
    return dict(zip(EXTENTS, value, strict=True))


class Values(BaseModel):
    """The values of an input in a profile, as TensorRT has them: minimum, optimum and maximum of each value.

    TensorRT calls such an input a shape tensor. An input without axes has one value. A profile is read twice: here for
    the values, and in `fields.axes_of_profile` for the axes.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", defer_build=True)

    min: _List
    opt: _List
    max: _List

    _lists = model_validator(mode="before")(_spread)

    @model_validator(mode="after")
    def _ordered(self) -> Self:
        counts = (len(self.min), len(self.opt), len(self.max))
        if len(set(counts)) > 1:
            raise wrong(f"has {counts[0]}, {counts[1]} and {counts[2]} values for min, opt and max", _EXAMPLE)
        for index, (least, usual, greatest) in enumerate(zip(self.min, self.opt, self.max, strict=True)):
            if not least <= usual <= greatest:
                what = f"is out of order: value {index} has min {least}, opt {usual}, max {greatest}"
                raise wrong(what, "a profile needs min <= opt <= max for each value")
        return self


def _of_profiles(value: Any) -> Any:
    """Return the values alone of each profile, by the name of the input; the axes have a field of their own."""
    profiles = as_list(value)
    if not isinstance(profiles, list | tuple):
        return ()
    return [
        {name: stated for name, stated in profile.items() if holds_values(stated)}
        if isinstance(profile, Mapping)
        else {}
        for profile in profiles
    ]


def _same_inputs(values: tuple[Mapping[str, Values], ...]) -> tuple[Mapping[str, Values], ...]:
    """Return `values`; an empty tuple where no profile states a value.

    Raises pydantic's error where one profile states the values of an input, and another profile does not.
    """
    names = dict.fromkeys(name for profile in values for name in profile)
    for name in names:
        lacking = [number for number, profile in enumerate(values) if name not in profile]
        if lacking:
            raise wrong(f"states the values of {name!r}, but not in profile {lacking[0]}", "state them in each profile")
    return values if names else ()


ShapeValues = Annotated[
    tuple[Mapping[Text, Values], ...], Field(max_length=64), BeforeValidator(_of_profiles), AfterValidator(_same_inputs)
]
"""For each profile of a recipe: the name of an input -> its values. Empty where no profile states values."""


def usual_at(
    sizes: Mapping[str, Any], profiles: Sequence[Mapping[str, Any]], values: Sequence[Mapping[str, Values]]
) -> dict[str, tuple[int, ...]]:
    """Return the usual values of the inputs for a shape to measure: those of the first profile that takes the shape.

    Where no profile takes the shape, the values are those of the first profile; none where no profile states values.
    """
    for profile, stated in zip(profiles, values, strict=False):  # values are none, or one for each profile
        pairs = [(profile[axis], size) for axis, size in sizes.items() if axis in profile and isinstance(size, int)]
        if all(extents.min <= size <= extents.max for extents, size in pairs):
            return at("opt", stated)
    return at("opt", values[0]) if values else {}


def usual_of_each(
    shapes: Sequence[Mapping[str, Any]], profiles: Sequence[Mapping[str, Any]], values: Sequence[Mapping[str, Values]]
) -> tuple[Mapping[str, tuple[int, ...]], ...]:
    """Return the usual values of the inputs for each shape to measure; empty where no profile states values."""
    return tuple(usual_at(shape, profiles, values) for shape in shapes) if values else ()


def at(end: str, values: Mapping[str, Values]) -> dict[str, tuple[int, ...]]:
    """Return the values of each input at one end of a profile: `min`, `opt` or `max`."""
    return {name: getattr(stated, end) for name, stated in values.items()}
