"""Types: checks values of a recipe against the message types of Triton's ModelConfig (model_config.proto)."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from engine.feasibility.triton.fault import Fault, Path
from engine.recipe.model_config import ENUMS, INTEGER_BOUNDS, MESSAGES, ONE_OF, SINCE
from engine.text import quantities, suggestions
from engine.text.display import described

_REALS = ("float", "double")
_LARGEST_FLOAT = 3.4028234663852886e38
"""The largest finite number of a 32-bit float."""
_OTHER_NAMES = {
    "FLOAT32": "TYPE_FP32", "FLOAT": "TYPE_FP32", "FLOAT16": "TYPE_FP16", "HALF": "TYPE_FP16", "FLOAT64": "TYPE_FP64",
    "DOUBLE": "TYPE_FP64", "BFLOAT16": "TYPE_BF16", "BYTES": "TYPE_STRING", "STR": "TYPE_STRING", "INT": "TYPE_INT64",
}  # fmt: skip
"""Names of data types in other libraries than Triton, with Triton's name of each type."""


def typed(overrides: Any, release: str = "") -> Any:
    """Return overrides as protobuf would store them, in plain Python types and without nulls.

    A whole number may be written as text, as in protobuf's JSON format. `release` is the release of Triton that reads
    the configuration, as "24.10"; empty where nobody knows. Raises Fault for the first value that does not fit its type
    in model_config.proto, and for a field or value that the release does not have.
    """
    return _Walk(release).value(overrides, "ModelConfig", ())


@dataclass(frozen=True)
class _Walk:
    """A walk through overrides, along the types of model_config.proto: messages, enums, scalars, lists and maps."""

    release: str

    def value(self, value: Any, kind: str, path: Path) -> Any:
        """Return a value of the type `kind`."""
        if kind.startswith("["):
            return self._list(value, kind[1:-1], path)
        if kind.startswith("{"):
            return self._map(value, kind, path)
        if kind in MESSAGES:
            return self._message(value, kind, path)
        return self._choice(value, kind, path) if kind in ENUMS else _scalar(value, kind, path)

    def _message(self, value: Any, kind: str, path: Path) -> dict[str, object]:
        fields, short = MESSAGES[kind], kind.rpartition(".")[2]
        if not isinstance(value, Mapping):
            shape = f"{{{next(iter(fields))}: ...}}" if fields else "{}"
            name = f"{path[-1]}: " if isinstance(path[-1], str) else ""
            hint = f'write {{string_value: "{value}"}}' if kind == "ModelParameter" else f"as in {name}{shape}"
            raise Fault(f"{_of(path)} is {described(value)}; a mapping of fields is meant", path, hint)
        fields_set = {}
        for name, inner in value.items():
            if name not in fields:
                where = f" in `{path[-1]}`" if path and isinstance(path[-1], str) else ""
                what = f"unknown field `{name}`{where}: Triton's {short} has none of this name"
                raise Fault(what, (*path, str(name)), suggestions.hint(str(name), fields), at_key=True)
            if inner is not None:
                self._refuse_later(f"{kind}.{name}", (*path, name), at_key=True)
                fields_set[name] = self.value(inner, fields[name], (*path, name))
        for group in ONE_OF.get(kind, ()):
            both = [name for name in fields_set if name in group]
            if len(both) > 1:
                what = f"`{both[1]}` and `{both[0]}` exclude each other: Triton's {short} has one of them"
                raise Fault(what, (*path, both[1]), "leave one out", at_key=True)
        return fields_set

    def _refuse_later(self, name: str, path: Path, *, at_key: bool) -> None:
        """Raise Fault for a field or a value of an enum that is younger than the release."""
        since = SINCE.get(name, "")
        if self.release and self.release < since:
            what = f"Triton {self.release} has no `{name.rpartition('.')[2]}` yet"
            raise Fault(what, path, f"leave it out, or use an image of {since} or later", at_key=at_key)

    def _list(self, value: Any, kind: str, path: Path) -> list[Any]:
        if isinstance(value, list | tuple):
            return [self.value(item, kind, (*path, index)) for index, item in enumerate(value)]
        plain = isinstance(value, str | int | float) and not isinstance(value, bool)
        item = f"{{count: {value}}}" if plain and path[-1:] == ("instance_group",) else value if plain else "{...}"
        hint = f"put it into a list: [{item}]"
        raise Fault(f"{_of(path)} is {described(value)}; a list is meant", path, hint)

    def _map(self, value: Any, type_of: str, path: Path) -> dict[Any, Any]:
        key, kind = type_of[1:-1].split(":")
        if not isinstance(value, Mapping):
            hint = "as in {key: {string_value: text}}" if kind == "ModelParameter" else "as in {key: value}"
            raise Fault(f"{_of(path)} is {described(value)}; a mapping is meant", path, hint)
        return {
            _scalar(name, key, (*path, name)): self.value(inner, kind, (*path, name))
            for name, inner in value.items()
            if inner is not None
        }

    def _choice(self, value: Any, kind: str, path: Path) -> str:
        choices = ENUMS[kind]
        if isinstance(value, str) and value in choices and value != "TYPE_INVALID":
            self._refuse_later(f"{kind}.{value}", path, at_key=False)
            return value
        word = str(value).upper()
        ends = [choice for choice in choices if choice.endswith(f"_{word}")]
        guess = [_OTHER_NAMES[word]] if word in _OTHER_NAMES and kind == "DataType" else ends
        guess = guess or suggestions.nearest(word, choices)
        hint = suggestions.did_you_mean(guess[0]) if guess and guess[0] != value else f"one of {', '.join(choices)}"
        raise Fault(f"{_of(path)} cannot be {described(value)}", path, hint.replace("one of TYPE_INVALID, ", "one of "))


def _scalar(value: Any, kind: str, path: Path) -> Any:
    if kind == "string":
        return _text(value, path)
    if kind != "bool":
        return _real(value, kind, path) if kind in _REALS else _whole(value, kind, path)
    if not isinstance(value, bool):
        raise Fault(f"{_of(path)} is {described(value)}; true or false is meant", path)
    return value


def _text(value: Any, path: Path) -> str:
    if isinstance(value, str):
        return value
    plain = isinstance(value, int | float)
    written = str(value).lower() if isinstance(value, bool) else value
    raise Fault(f"{_of(path)} is {described(value)}; text is meant", path, f'quote it: "{written}"' if plain else "")


def _whole(value: Any, kind: str, path: Path) -> int:
    digits = isinstance(value, str) and value.removeprefix("-").isascii() and value.removeprefix("-").isdigit()
    if isinstance(value, bool) or not (isinstance(value, int) or digits):
        raise Fault(
            f"{_of(path)} is {described(value)}; a whole number is meant", path, _hint(value, path, float.is_integer)
        )
    number, (least, most) = int(value), INTEGER_BOUNDS[kind]
    if not least <= number <= most:
        limit = f"at least {least:,}" if number < least else f"at most {most:,}"
        raise Fault(f"{_of(path)} is {number:,}; {limit} is meant ({kind})", path)
    return number


def _real(value: Any, kind: str, path: Path) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise Fault(f"{_of(path)} is {described(value)}; a number is meant", path, _hint(value, path, math.isfinite))
    if not math.isfinite(value) or (kind == "float" and abs(value) > _LARGEST_FLOAT):
        raise Fault(f"{_of(path)} is {value}; a finite number is meant", path)
    return float(value)


def _hint(value: Any, path: Path, accepts: Callable[[float], bool]) -> str:
    """Return the hint for a number with a unit, such as `5ms`; "" for any other value."""
    if isinstance(value, bool) or not isinstance(value, str | float):
        return ""
    field = next((each for each in reversed(path) if isinstance(each, str)), "")
    return quantities.hint(str(value), field, accepts=accepts)


def _of(path: Path) -> str:
    """Return the words for `path` in an error: the last field's name, with the indices after it: `` `dims[1]` ``."""
    names = [index for index, segment in enumerate(path) if isinstance(segment, str)]
    if not names:
        return "the section"
    head, *numbers = path[names[-1] :]
    return f"`{head}{''.join(f'[{number}]' for number in numbers)}`"
