"""Values of the page: a value of `recipe show --json` or `recipe history --json`, with its path, as HTML."""

# Every number that the page shows stands in an element with its path (`data-path`) and its whole value (`data-value`),
# so that a test compares the page with the JSON, and a script can read the page.

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from markupsafe import Markup

from engine.text import quantities, sizes

_LONGEST = 100
"""The most items of a list or mapping that the page shows."""
_TEXT = 300
"""The most characters of a text that the page shows."""


@dataclass(frozen=True)
class Value:
    """A JSON value and its path, such as "show.0.bench.2.p50_ms"."""

    raw: object
    path: str

    def __getitem__(self, name: str | int) -> Value:
        """Return an inner value; the value None for a name that is not there."""
        inner: object = None
        if isinstance(self.raw, Mapping):
            inner = self.raw.get(name)
        elif isinstance(self.raw, Sequence) and isinstance(name, int) and name < len(self.raw):
            inner = self.raw[name]
        return Value(inner, f"{self.path}.{name}")

    def __iter__(self) -> Iterator[Value]:
        """Iterate over the items of a list."""
        count = len(self.raw) if isinstance(self.raw, (list, tuple)) else 0
        return (self[number] for number in range(count))

    def __bool__(self) -> bool:
        """Whether there is anything to show; zero is."""
        return self.raw not in (None, "", [], {}, ())

    def items(self) -> Iterator[tuple[str, Value]]:
        """Yield the names and values of a mapping."""
        return ((str(name), self[name]) for name in self.raw) if isinstance(self.raw, Mapping) else iter(())

    @property
    def number(self) -> float | None:
        """The value as a number; None for anything else."""
        is_number = isinstance(self.raw, (int, float)) and not isinstance(self.raw, bool)
        return float(self.raw) if is_number else None  # type: ignore[arg-type]

    @property
    def text(self) -> str:
        """The value as text, shortened; empty for None."""
        text = "" if self.raw is None else str(self.raw)
        return text if len(text) <= _TEXT else f"{text[:_TEXT]}…"

    @property
    def kind(self) -> str:
        """How the page shows a value of a report: `number`, `text`, `table`, `list` or `mapping`."""
        if isinstance(self.raw, Mapping):
            return "mapping"
        if isinstance(self.raw, (list, tuple)):
            return "table" if self.raw and all(isinstance(each, Mapping) for each in self.raw) else "list"
        return "text" if self.number is None else "number"

    @property
    def shown(self) -> list[Value]:
        """The items of a list that the page shows."""
        return list(self)[:_LONGEST]

    @property
    def more(self) -> int:
        """The number of items of a list that the page leaves out."""
        return max(0, len(list(self)) - _LONGEST)

    @property
    def columns(self) -> list[str]:
        """The names in the items of a list of mappings that have a value, in the order in which they come."""
        return list(dict.fromkeys(name for each in self for name, inner in each.items() if inner))


NOTHING = Value(None, "")
"""What stands for a value that is not there."""


def _marked(value: Value, text: str, *, formula: str = "") -> Markup:
    extra = Markup(' data-formula="{}"').format(formula) if formula else ""
    element = Markup('<span class="n" data-path="{}" data-value="{}"{}>{}</span>')
    return element.format(value.path, json.dumps(value.raw), extra, text)


def _formatted(text: Callable[[float], str]) -> Callable[[Value], Markup]:
    def formatted(value: Value) -> Markup:
        number = value.number
        return Markup() if number is None else _marked(value, text(number))

    return formatted


def plain(number: float) -> str:
    """Return a number as a person writes it: whole numbers whole, others with four significant digits."""
    return f"{number:,.0f}" if number == int(number) and abs(number) < 1e15 else f"{number:.4g}"  # noqa: PLR2004 - exact


def per_second(value: Value, batch: int) -> Markup:
    """Return how many rows a second follow from the latency of a batch."""
    number = value.number
    rows = "" if not number else f"{1000 * batch / number:,.0f}"
    return _marked(value, rows, formula=f"1000*{batch}/x")


FILTERS: Mapping[str, Callable[[Value], Markup]] = {
    "num": _formatted(plain),
    "ms": _formatted(lambda number: f"{number:.3f}"),
    "rate": _formatted(lambda number: f"{number:,.0f}"),
    "size": _formatted(lambda number: sizes.decimal(int(number))),
    "memory": _formatted(lambda number: sizes.binary(int(number))),
    "lasting": _formatted(quantities.duration),
    "percent": _formatted(lambda number: f"{number:.1%}"),
    "times": _formatted(lambda number: f"{number:.2f} x"),
    "accuracy": _formatted(lambda number: f"{number:.4f}"),
}
"""The filters of the templates: each shows a number in one way."""
