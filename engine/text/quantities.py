"""Quantities: numbers with a unit as people type them, the plain number that is meant; durations for people."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping

_QUANTITY = r"([-+]?)([0-9][0-9,]*)?(\.[0-9]+)?([eE][-+]?[0-9]+)?\s*([^\W\d_]+|%|‰)?"
_THOUSANDS = r"[0-9]{1,3}(,[0-9]{3})+"
_PARTS = {"%": 0.01, "percent": 0.01, "‰": 0.001}
_SECONDS = {
    **dict.fromkeys(("ns", "nanoseconds"), 1e-9),
    **dict.fromkeys(("us", "µs", "μs", "usec", "microseconds"), 1e-6),
    **dict.fromkeys(("ms", "msec", "milliseconds", "millisecond"), 1e-3),
    **dict.fromkeys(("s", "sec", "secs", "second", "seconds"), 1.0),
    **dict.fromkeys(("min", "mins", "minute", "minutes"), 60.0),
    **dict.fromkeys(("h", "hour", "hours"), 3600.0),
}
_TIMES = {"_ms": ("milliseconds", 1e-3), "_microseconds": ("microseconds", 1e-6), "_seconds": ("seconds", 1.0)}
"""The end of a field's name -> the unit of its number, and the unit's seconds."""
_COUNTS = {"k": 1e3, "thousand": 1e3, "million": 1e6}
_DIGITS = 12
"""The significant digits of a converted number, few enough to hide the rounding of binary fractions."""
_MINUTE, _HOUR = 60.0, 3600.0
_NEXT_UNIT = 100
"""The number of seconds or minutes from which on the next larger unit is easier to read."""


def hint(text: str, name: str = "", *, accepts: Callable[[float], bool] = math.isfinite) -> str:
    """Return the hint that writes `text`, such as "5ms" or "95%", as the plain number of the field `name`.

    The end of the field's name decides the unit: `p95_ms` takes milliseconds. Returns "" where `text` is no number with
    a unit, where its unit cannot be converted, or where `accepts` is false for the plain number.
    """
    number, unit = in_unit(text, name)
    if number is None or not accepts(float(number)):
        return ""
    return f"write {number}, the number of {unit}" if unit else f"write {number}"


def in_unit(text: str, name: str) -> tuple[str | None, str]:
    """Return the plain number that `text` means in the field `name`, None where it means none, and the field's unit."""
    unit, seconds = next((time for end, time in _TIMES.items() if name.endswith(end)), ("", None))
    if seconds is None:
        factors: Mapping[str, float] = {**_PARTS, **_COUNTS}
    else:
        factors = {word: factor / seconds for word, factor in _SECONDS.items()}
    return _number(text, factors, others=seconds is None), unit


def plain(number: float) -> str:
    """Return a number as people write it: `5`, `0.95`, without the digits that binary fractions add."""
    return str(int(number)) if number == int(number) and abs(number) < 1e15 else f"{number:.{_DIGITS}g}"  # noqa: PLR2004  whole numbers stay whole


def _number(text: str, factors: Mapping[str, float], *, others: bool) -> str | None:
    """Return the number that `text` means in the unit of a field, as text; None where `text` means no such number.

    With `others`, an unknown unit such as "tokens" is dropped, except for units of time, which change the number.
    """
    match = re.fullmatch(_QUANTITY, text.strip())
    if match is None or not (match[2] or match[3]):
        return None
    sign, whole, fraction, power, unit = match[1], match[2] or "", match[3] or "", match[4] or "", match[5] or ""
    if "," in whole:
        if re.fullmatch(_THOUSANDS, whole):
            whole = whole.replace(",", "")
        elif not fraction and whole.count(",") == 1:
            whole = whole.replace(",", ".")  # a comma for the decimal point
        else:
            return None
    word = unit if unit in factors else unit.lower()
    factor = factors.get(word, 1.0 if not unit or (others and word not in _SECONDS) else None)
    if factor is None:
        return None
    number = float(f"{sign}{whole or '0'}{fraction}{power}") * factor
    return plain(number) if abs(number) < float("inf") else None


def duration(seconds: float) -> str:
    """Return a duration with two or three digits: "0.4 s", "53 s", "2.8 min", "1.7 h"."""
    if seconds < _NEXT_UNIT:
        return f"{seconds:.1f} s" if seconds < 10 else f"{seconds:.0f} s"  # noqa: PLR2004 - two digits
    return f"{seconds / _MINUTE:.1f} min" if seconds < _NEXT_UNIT * _MINUTE else f"{seconds / _HOUR:.1f} h"


def about_duration(seconds: float) -> str:
    """Return a duration that is not certain: "about 53 s"."""
    shown = duration(seconds)
    return "less than 0.1 s" if shown == duration(0) else f"about {shown}"
