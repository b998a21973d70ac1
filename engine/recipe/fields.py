"""The bounded building blocks of the schema: names, sizes, numbers, and the short forms that stand for them."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Annotated, Any

from pydantic import AfterValidator, BeforeValidator, Field, Strict, StringConstraints, WithJsonSchema
from pydantic_core import PydanticCustomError

from engine.text import sizes

PATTERNS = {
    r"^[A-Za-z0-9][A-Za-z0-9._-]*$": "letters, digits, '.', '_' and '-', starting with a letter or a digit",
    r"^[^\x00-\x1f\x7f]+$": "printable text on one line",
    r"^[^\s\x00-\x1f\x7f]+$": "printable text without spaces",
}
"""What each pattern of a text means, in words for errors."""
_FILE_NAME, _PRINTABLE, _WORD = PATTERNS

Name = Annotated[str, StringConstraints(pattern=_FILE_NAME, max_length=128)]
"""A name that is safe as a file name."""
Text = Annotated[str, StringConstraints(pattern=_PRINTABLE, max_length=4096)]
"""A line of text."""
Word = Annotated[str, StringConstraints(pattern=_WORD, max_length=256)]
"""A word: an axis, a revision, a version."""
Flag = Annotated[bool, Strict()]
"""true or false, nothing that could be taken for it."""
Size = Annotated[int, Field(strict=True, ge=1, le=1_000_000)]
"""One extent of an axis, or a count: from 1 to a million."""
Small = Annotated[int, Field(strict=True, ge=0, le=1024)]
"""A level or a small count, from 0 to 1024."""
Number = Annotated[float, Strict(), Field(allow_inf_nan=False, ge=-1e12, le=1e12)]
"""A finite number."""
Milliseconds = Annotated[float, Strict(), Field(allow_inf_nan=False, gt=0, le=1e9)]
"""A time in milliseconds, more than nothing and less than two weeks."""


def wrong(what: str, hint: str = "") -> PydanticCustomError:
    """Return the error for a value that has the right type and still cannot be; `what` follows the field's name."""
    # The texts travel as context: as a message template their braces would be taken for places to fill.
    return PydanticCustomError("recipe", "{what}", {"what": what, "hint": hint})


def unknown(name: str) -> PydanticCustomError:
    """Return the error for a field that is not known, as pydantic's own is called."""
    return PydanticCustomError("extra_forbidden", "unknown field", {"key": name})


def _memory(value: Any) -> Any:
    """Return a size in bytes for `2GiB`; anything else as it is, for the type check to judge."""
    if not isinstance(value, str):
        return value
    try:
        return sizes.parse(value)
    except ValueError:
        raise wrong(f"is {value[:40]!r}; a size is meant", "sizes look like 512MiB, 2GiB or 1.5GB") from None


Memory = Annotated[
    int,
    Field(strict=True, ge=1, le=4 * sizes.TIB),
    BeforeValidator(_memory),
    WithJsonSchema({"anyOf": [{"type": "integer", "minimum": 1}, {"type": "string"}]}),
]
"""A size in bytes, at most 4 TiB; `2GiB` and `512MB` are understood."""


def spread(value: Any) -> Any:
    """Return {min, opt, max} for a single size or for [min, opt, max]."""
    if isinstance(value, int) and not isinstance(value, bool):
        return {"min": value, "opt": value, "max": value}
    if isinstance(value, list | tuple):
        if len(value) != 3:  # noqa: PLR2004
            raise wrong(f"has {len(value)} numbers; three are meant", "write [min, opt, max], or one number")
        return dict(zip(("min", "opt", "max"), value, strict=True))
    return value


def one_sided(side: str) -> Callable[[Any], Any]:
    """Return what turns a bare number into a bound on `side` (`at_least` or `at_most`)."""

    def short_form(value: Any) -> Any:
        is_number = isinstance(value, int | float) and not isinstance(value, bool)
        return {side: value} if is_number else value

    return short_form


def limits_within(low: float, high: float) -> Callable[[Any], Any]:
    """Return the check that both sides of a bound lie in what the measured number can be at all."""

    def check(bound: Any) -> Any:
        for side in (bound.at_least, bound.at_most):
            if side is not None and not low <= side <= high:
                raise wrong(f"asks for {side:g}; it is a number from {low:g} to {high:g}")
        return bound

    return check


_SHAPE = re.compile(r"[0-9]{1,7}(x[0-9]{1,7})*")
_TEXT_INPUTS = ("input_ids", "attention_mask", "token_type_ids", "position_ids")


def axes_of_profile(value: Any) -> Any:
    """Return a profile by axis where it is given by input, as trtexec has it: `input_ids: [1x16, 1x128, 8x512]`.

    A text input has the axes batch and sequence; all inputs of a profile must say the same.
    """
    if not isinstance(value, Mapping):
        return value
    axes: dict[Any, Any] = {key: said for key, said in value.items() if not _by_input(said)}
    for key, said in value.items():
        if _by_input(said):
            for axis, extents in _text_axes(key, said).items():
                if axes.setdefault(axis, extents) != extents:
                    raise wrong(
                        f"says two different things about {axis}", "inputs share their axes: say each axis once"
                    )
    return axes


def _by_input(said: Any) -> bool:
    words = said if isinstance(said, list | tuple) else [said]
    return any(isinstance(word, str) and _SHAPE.fullmatch(word) and "x" in word for word in words)


def _text_axes(name: str, said: Any) -> dict[str, list[int]]:
    hint = "say it by axis: {batch: [1, 8, 32], sequence: [1, 128, 512]}"
    if name not in _TEXT_INPUTS:
        raise wrong(f"gives shapes for the input {name!r}, whose axes have no names that are known here", hint)
    words = list(said) if isinstance(said, list | tuple) else [said] * 3
    shapes = [[int(n) for n in w.split("x")] for w in words if isinstance(w, str) and _SHAPE.fullmatch(w)]
    if len(words) != 3 or [len(shape) for shape in shapes] != [2, 2, 2]:  # noqa: PLR2004
        raise wrong(f"gives {name!r} something else than three shapes BATCHxSEQUENCE", "as in [1x16, 1x128, 8x512]")
    batch, sequence = zip(*shapes, strict=True)
    return {"batch": list(batch), "sequence": list(sequence)}


def as_list(value: Any) -> Any:
    """Return a list for a single mapping: one profile needs no dash."""
    return [value] if isinstance(value, Mapping) else value


def once_each(items: tuple[Any, ...]) -> tuple[Any, ...]:
    """Refuse a list that says the same twice."""
    for index, item in enumerate(items):
        if item in items[:index]:
            raise wrong(f"says the same twice: items {items.index(item)} and {index}, counted from 0", "leave one out")
    return items


Distinct = AfterValidator(once_each)
