"""Reports as dataclasses with typed fields: their JSON form, and how their numbers are shown."""

from __future__ import annotations

import types
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import MISSING, Field, dataclass, fields, is_dataclass
from functools import cache
from typing import (
    Any,
    ClassVar,
    Literal,
    Protocol,
    Self,
    Union,
    cast,
    get_args,
    get_origin,
    get_type_hints,
    runtime_checkable,
)

_NUMBER = "number"
_WRITTEN = "written"

WRITTEN: Mapping[str, object] = {_WRITTEN: True}
"""Metadata of a field that JSON always holds, even with the default value, such as `null` for an unknown value."""


@dataclass(frozen=True)
class TypedReport:
    """A report of a step, a build or a load test: a frozen dataclass of JSON values, dataclasses, tuples and mappings.

    A field whose value is the field's default is left out of the JSON; reading the JSON gives the default again. If a
    report gets a new field with a default, `version` stays, because older JSON without the field can still be read.
    Renaming a field, dropping a field or changing its meaning raises `version`, and `migrated` then converts older
    reports. A job with an unreadable report is built again.
    """

    version: ClassVar[int] = 1

    @classmethod
    def migrated(cls, raw: Mapping[str, object], version: int) -> Mapping[str, object] | None:
        """Return JSON of an older version in the form of the current version; None where no conversion is possible."""
        return raw if version == cls.version else None

    def reasons(self) -> list[str]:
        """Return why parts of a model are not in the precision of the recipe: facts for an error of a later job."""
        return []

    @property
    def warnings(self) -> Sequence[str]:
        """What readers must know beside the numbers of the report, wherever the numbers stand."""
        return ()

    def to_json(self) -> dict[str, object]:
        """Return the report as a JSON object."""
        return cast("dict[str, object]", _plain(self))

    @classmethod
    def from_json(cls, raw: object, version: int | None = None) -> Self:
        """Make a report from its JSON object and return the report.

        Raises ValueError where the JSON object does not fit the fields of the report.
        """
        if version not in (None, cls.version):
            raw = cls.migrated(cast("Mapping[str, object]", raw), version)
        return cast("Self", _read(cls, raw))


@dataclass(frozen=True)
class Number:
    """How a report shows a number: its label, its unit, and its decimal places or its significant digits."""

    label: str
    unit: str = ""
    digits: int = 3
    significant: bool = False

    def text(self, value: float) -> str:
        """Return `value` as text, rounded to `digits`, without its unit."""
        return f"{value:.{self.digits}{'g' if self.significant else 'f'}}"

    def line(self, value: object) -> str:
        """Return a value as a line: label, digits and unit; or the line that a `HasLine` writes for itself."""
        if isinstance(value, HasLine):
            return value.line(self)
        unit = f" {self.unit}" if self.unit else ""
        return f"{self.label} {self.text(cast('float', value))}{unit}"


@runtime_checkable
class HasLine(Protocol):
    """A value that consists of several numbers and that formats its own line of the report."""

    def line(self, number: Number) -> str:
        """Return the line of the report that shows the value, with the label and the decimal places of `number`."""


def measured(label: str, *, unit: str = "", digits: int) -> Mapping[str, object]:
    """Return the metadata (`field(metadata=...)`) of a field that is shown with `digits` decimal places."""
    return {_NUMBER: Number(label, unit, digits)}


def significant(label: str, *, unit: str = "", digits: int) -> Mapping[str, object]:
    """Return the metadata of a field that is shown with a number of significant digits."""
    return {_NUMBER: Number(label, unit, digits, significant=True)}


def numbers(kind: type) -> dict[str, Number]:
    """Return the fields of a dataclass that are shown as numbers: name of the field -> how its number is shown."""
    return {each.name: each.metadata[_NUMBER] for each in fields(kind) if _NUMBER in each.metadata}


def lines(report: TypedReport) -> Iterator[str]:
    """Yield a line for each number of the report that is not None."""
    for name, number in numbers(type(report)).items():
        value = getattr(report, name)
        if value is not None:
            yield number.line(value)


def _plain(value: Any) -> object:
    """Return a value as `json.dumps` takes it: dataclasses become dictionaries, and tuples become lists."""
    if is_dataclass(value) and not isinstance(value, type):
        return {each.name: _plain(inner) for each, inner in _kept(value)}
    if isinstance(value, Mapping):
        return {str(name): _plain(each) for name, each in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(each) for each in value]
    return value


def _kept(value: Any) -> Iterator[tuple[Field[Any], object]]:
    for each in fields(value):
        inner = getattr(value, each.name)
        if each.metadata.get(_WRITTEN) or not _has_default(each) or inner != _default(each):
            yield each, inner


def _has_default(field: Field[Any]) -> bool:
    return field.default is not MISSING or field.default_factory is not MISSING


def _default(field: Field[Any]) -> object:
    return field.default if field.default_factory is MISSING else field.default_factory()


@cache
def _hints(kind: type) -> Mapping[str, Any]:
    return get_type_hints(kind)


def _read(hint: Any, raw: Any) -> object:
    """Return `raw`, parsed JSON, as a value of the type `hint`.

    Raises ValueError if `raw` is no value of the type `hint`.
    """
    origin, arguments = get_origin(hint), get_args(hint)
    if is_dataclass(hint) and isinstance(hint, type):
        value = _read_fields(hint, raw)
    elif origin in (Union, types.UnionType):
        value = _read_any(arguments, raw)
    elif origin is tuple and isinstance(raw, (list, tuple)):
        value = tuple(_read_items(arguments, raw))
    elif origin is Mapping and isinstance(raw, Mapping):
        value = {name: _read(arguments[1], each) for name, each in raw.items()}
    elif _is_plain(hint, raw):
        value = raw
    else:
        raise ValueError(f"{raw!r} is no {hint}")
    return value


def _is_plain(hint: Any, raw: object) -> bool:
    """Tell whether the JSON value `raw` fits `hint`, a type without parts: text, number, boolean, None or literal."""
    hint = getattr(hint, "__supertype__", hint)  # of a NewType
    if get_origin(hint) is Literal:
        return raw in get_args(hint)
    number = isinstance(raw, (int, float)) and not isinstance(raw, bool)
    return hint is object or type(raw) is hint or (hint is float and number)


def _read_fields(kind: type, raw: Any) -> object:
    known = {each.name: each for each in fields(kind)}
    if not isinstance(raw, Mapping) or not raw.keys() <= known.keys():
        raise ValueError(f"these are not the fields of {kind.__name__}: {raw!r}")
    missing = [name for name, each in known.items() if name not in raw and not _has_default(each)]
    if missing:
        raise ValueError(f"{kind.__name__} lacks {', '.join(missing)}")
    return kind(**{name: _read(_hints(kind)[name], value) for name, value in raw.items()})


def _read_any(hints: Sequence[Any], raw: Any) -> object:
    for hint in hints:
        try:
            return _read(hint, raw)
        except ValueError:
            continue
    raise ValueError(f"{raw!r} is none of {hints}")


def _read_items(hints: Sequence[Any], raw: Sequence[Any]) -> Iterator[object]:
    if len(hints) == 2 and hints[1] is Ellipsis:  # noqa: PLR2004  tuple[X, ...]
        hints = [hints[0]] * len(raw)
    if len(hints) != len(raw):
        raise ValueError(f"{raw!r} has not {len(hints)} items")
    for hint, each in zip(hints, raw, strict=True):
        yield _read(hint, each)
