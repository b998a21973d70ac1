"""The types of the schema's fields: names, sizes, numbers, with their limits and short forms."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Annotated, Any, TypeVar

from pydantic import (
    AfterValidator,
    BeforeValidator,
    Field,
    GetCoreSchemaHandler,
    GetJsonSchemaHandler,
    Strict,
    StringConstraints,
    WithJsonSchema,
)
from pydantic_core import PydanticCustomError, core_schema

from engine.runtimes import axes
from engine.text import quantities, sizes
from engine.text.display import shown

if TYPE_CHECKING:
    from pydantic.json_schema import JsonSchemaValue

T = TypeVar("T")

PATTERNS = {
    r"^[A-Za-z0-9][A-Za-z0-9._-]*$": "letters, digits, '.', '_' and '-', starting with a letter or a digit",
    r"^[^\x00-\x1f\x7f]+$": "printable text on one line",
    r"^[^\s\x00-\x1f\x7f]+$": "printable text without spaces",
}
"""A mapping from a text field's regular expression to a description of valid values, for error messages."""
_FILE_NAME, _PRINTABLE, _WORD = PATTERNS

Name = Annotated[str, StringConstraints(pattern=_FILE_NAME, max_length=128)]
"""A name that can be the name of a file."""
Text = Annotated[str, StringConstraints(pattern=_PRINTABLE, max_length=4096)]
"""A text of one line."""
Word = Annotated[str, StringConstraints(pattern=_WORD, max_length=256)]
"""A text without spaces: an axis, a revision, a version."""
Flag = Annotated[bool, Strict()]
"""A Boolean: the values true and false are valid, and all other values, even 0 and 1, are errors."""
LARGEST_SIZE = 1_000_000
"""Upper limit of the size of an axis, and of the value of a field that is a count."""
Size = Annotated[int, Field(strict=True, ge=1, le=LARGEST_SIZE)]
"""The size of an axis, or a count: from 1 to a million."""
Small = Annotated[int, Field(strict=True, ge=0, le=1024)]
"""An integer that is a level or a small count: from 0 to 1024."""
Number = Annotated[float, Strict(), Field(allow_inf_nan=False, ge=-1e12, le=1e12)]
"""A finite number whose absolute value is at most a million million."""
Milliseconds = Annotated[float, Strict(), Field(allow_inf_nan=False, gt=0, le=1e9)]
"""A time in milliseconds: more than 0, and at most a thousand million, which is under two weeks."""


def wrong(what: str, hint: str = "") -> PydanticCustomError:
    """Return the error for a wrong value of the right type; its message is the field's name and `what`."""
    # The texts are context, not the template: pydantic would take braces in a template for placeholders.
    return PydanticCustomError("recipe", "{what}", {"what": what, "hint": hint})


def unknown(name: str) -> PydanticCustomError:
    """Return the error for an unknown field, with the error type that pydantic itself uses for unknown fields."""
    return PydanticCustomError("extra_forbidden", "unknown field", {"key": name})


def _memory(value: Any) -> Any:
    """Return the number of bytes that a text such as `2GiB` means.

    A whole number without a unit is a number of bytes if it is at least a MiB. A smaller number is an error, because
    `workspace: 2` means 2 GiB to its author. Other values are returned unchanged.
    """
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        return value
    text = str(value)
    if sizes.lacks_unit(text) and not (isinstance(value, int) and (value >= sizes.MIB or value < 1)):
        raise wrong(f"is {shown(text)}, a size without a unit", sizes.hint(text))
    if not isinstance(value, str):
        return value
    try:
        return sizes.parse(value.strip())
    except ValueError:
        raise wrong(f"is {shown(value)!r}; a size is meant", sizes.hint(value)) from None


Memory = Annotated[
    int,
    Field(strict=True, ge=1, le=4 * sizes.TIB),
    BeforeValidator(_memory),
    WithJsonSchema({"anyOf": [{"type": "integer", "minimum": sizes.MIB}, {"type": "string"}]}),
]
"""A size in bytes, at most 4 TiB: in a recipe a text such as `2GiB`, or a number of bytes of at least a MiB."""


EXTENTS = ("min", "opt", "max")
"""The sizes of an axis in a profile, in the order of the short form [min, opt, max]."""


def holds_values(stated: Any) -> bool:
    """Tell whether an entry of a profile has lists: then it states values of an input, and no sizes of an axis."""
    ends = stated.values() if isinstance(stated, Mapping) else stated
    return isinstance(stated, Mapping | list | tuple) and any(isinstance(end, list | tuple) for end in ends)


def spread(value: Any) -> Any:
    """Return {min, opt, max} for a single size or for [min, opt, max]; another value unchanged."""
    if isinstance(value, int) and not isinstance(value, bool):
        return dict.fromkeys(EXTENTS, value)
    if isinstance(value, list | tuple):
        if len(value) != len(EXTENTS):
            raise wrong(f"has {len(value)} numbers; three are meant", "write [min, opt, max], or one number")
        return dict(zip(EXTENTS, value, strict=True))
    return value


def one_sided(side: str) -> Callable[[Any], Any]:
    """Return the function that turns a bare number into a bound on `side`, which is `at_least` or `at_most`."""

    def short_form(value: Any) -> Any:
        is_number = isinstance(value, int | float) and not isinstance(value, bool)
        return {side: value} if is_number else value

    return short_form


_PERCENT = 2
"""From 2 on, a number in place of a share is taken for a percentage."""


def limits_within(low: float, high: float) -> Callable[[Any], Any]:
    """Return a validator that raises an error if `at_least` or `at_most` of a bound is below `low` or above `high`."""

    def check(bound: Any) -> Any:
        for side in (bound.at_least, bound.at_most):
            if side is not None and not low <= side <= high:
                share = side / 100
                hint = f"write {quantities.plain(share)}" if side >= _PERCENT and low <= share <= high else ""
                raise wrong(f"asks for {side:g}; a number from {low:g} to {high:g} is meant", hint)
        return bound

    return check


_BUDGET = "budget"
_SHAPE = r"[0-9]{1,7}(x[0-9]{1,7})*"


def axes_of_profile(value: Any) -> Any:
    """Return a profile by axis for a profile in trtexec's form, which is by input: `image: [1x3x32x32, ...]`.

    The key of an axis is `image[0]` then: the axes of the input have names only in the model. A profile that is already
    written by axis, as in `batch: [1, 8, 32]`, is returned unchanged. Values of inputs are left out
    (`engine.recipe.shape_values`).
    """
    if not isinstance(value, Mapping):
        return value
    if not value:
        raise PydanticCustomError("too_short", "an empty profile", {"min_length": 1})
    by_axis: dict[Any, Any] = {}
    for name, extents in value.items():
        if holds_values(extents):
            continue
        if not _are_shapes(extents):
            by_axis[name] = extents
            continue
        shapes = [_sizes(word) for word in _words(extents)]
        if len(shapes) != len(EXTENTS) or len({len(shape) for shape in shapes}) != 1:
            what = f"gives {name!r} a value that is not three shapes with equally many axes"
            raise wrong(what, "as in [1x16, 1x128, 8x512]")
        if any(0 in shape for shape in shapes):
            raise wrong(f"gives an axis of {name!r} the size 0", "the size of an axis is at least 1")
        by_axis |= {axes.place(name, index): list(sizes) for index, sizes in enumerate(zip(*shapes, strict=True))}
    return by_axis


OF_SAMPLES = "samples"
"""The size of an axis, in a shape of `bench`, that stands for the lengths of the samples."""


def by_axis_and_budget(shape: Mapping[Any, Any]) -> dict[str, Any]:
    """Return the fields of a shape of `bench`. Raises pydantic's error without axes, or for `samples` twice."""
    sizes = _axes_of_shape({key: size for key, size in shape.items() if key != _BUDGET})
    mixed = [key for key, size in sizes.items() if size == OF_SAMPLES]
    if len(mixed) > 1:
        raise wrong(f"gives two axes the lengths of samples: {mixed[0]} and {mixed[1]}", "only one axis counts tokens")
    axes = {key: size for key, size in sizes.items() if size != OF_SAMPLES}
    if not sizes:
        raise wrong("names no axis", "as in {batch: 1, sequence: 16}")
    budget = {_BUDGET: shape[_BUDGET]} if _BUDGET in shape else {}
    return {"axes": axes, **({"samples": mixed[0]} if mixed else {}), **budget}


def _axes_of_shape(value: Mapping[Any, Any]) -> dict[Any, Any]:
    """Return sizes by axis where sizes may be by input, as in `image: 1x3x32x32`."""
    by_axis: dict[Any, Any] = {}
    for name, extent in value.items():
        sizes = {axes.place(name, index): size for index, size in enumerate(_sizes(extent))}
        by_axis |= sizes if _are_shapes(extent) else {name: extent}
    return by_axis


_TEXT_AXES = ("batch", "sequence")
_TEXT_INPUTS = ("input_ids", "attention_mask", "token_type_ids", "position_ids")
_TEXT_PLACES = {axes.place(name, index): axis for name in _TEXT_INPUTS for index, axis in enumerate(_TEXT_AXES)}


def text_axes(profile: Mapping[str, T]) -> dict[str, T]:
    """Return a profile of a checkpoint, in which the axes of text inputs have the names batch and sequence.

    The text inputs of a checkpoint share their axes: an axis must have the same sizes in each. Raises pydantic's error.
    """
    named: dict[str, T] = {}
    for key, extents in profile.items():
        axis = _TEXT_PLACES.get(key, key)
        if axis == key and axes.input_of(key) in _TEXT_INPUTS:
            raise wrong(
                f"gives {axes.input_of(key)!r} shapes that are not BATCHxSEQUENCE", "as in [1x16, 1x128, 8x512]"
            )
        if named.setdefault(axis, extents) != extents:
            raise wrong(f"says two different things about {axis}", "inputs share their axes: say each axis once")
    return named


def _are_shapes(value: Any) -> bool:
    return any(isinstance(word, str) and re.fullmatch(_SHAPE, word) and "x" in word for word in _words(value))


def _words(value: Any) -> list[Any]:
    """Return what a profile says for the minimum, the optimum and the maximum; a single value stands for all three."""
    if isinstance(value, Mapping):
        return [value[end] for end in EXTENTS if end in value]
    return list(value) if isinstance(value, list | tuple) else [value] * len(EXTENTS)


def _sizes(word: Any) -> tuple[int, ...]:
    """Return the sizes in a text such as `1x3x32x32`; no sizes for a text that is no shape."""
    return tuple(map(int, word.split("x"))) if isinstance(word, str) and re.fullmatch(_SHAPE, word) else ()


def as_list(value: Any) -> Any:
    """Put a single mapping into a list, so that one profile needs no dash; return other values unchanged."""
    return [value] if isinstance(value, Mapping) else value


def no_values(value: Any) -> Any:
    """Return the profiles of one graph of several. Raises pydantic's error for values of an input."""
    for profile in value if isinstance(value, list | tuple) else (value,):
        for name, stated in profile.items() if isinstance(profile, Mapping) else ():
            if holds_values(stated):
                raise wrong(f"states values of {name!r}", "a size, [min, opt, max], is meant")
    return value


def once_each(items: tuple[Any, ...]) -> tuple[Any, ...]:
    """Return `items`. Raise pydantic's error where two of the items are equal."""
    for index, item in enumerate(items):
        if item in items[:index]:
            raise wrong(f"says the same twice: items {items.index(item)} and {index}, counted from 0", "leave one out")
    return items


Distinct = AfterValidator(once_each)


class OneOf:
    """A field as of a `Literal` of several names, which are looked up in each validation: packages may add names."""

    def __init__(self, names: Callable[[], Sequence[str]]) -> None:
        self.names = names

    def __get_pydantic_core_schema__(self, _source: Any, _handler: GetCoreSchemaHandler) -> core_schema.CoreSchema:
        return core_schema.no_info_plain_validator_function(self._name)

    def __get_pydantic_json_schema__(
        self, _schema: core_schema.CoreSchema, _handler: GetJsonSchemaHandler
    ) -> JsonSchemaValue:
        return {"enum": list(self.names()), "type": "string"}

    def _name(self, value: Any) -> str:
        names = self.names()
        if not isinstance(value, str) or value not in names:
            expected = ", ".join(map(repr, names))
            raise PydanticCustomError("literal_error", "Input should be {expected}", {"expected": expected})
        return value
