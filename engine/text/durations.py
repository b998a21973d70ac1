"""Durations in texts for people."""

from __future__ import annotations

_MINUTE, _HOUR = 60.0, 3600.0
_MANY = 100
"""The number of seconds or minutes from which on the next larger unit is easier to read."""


def rounded(seconds: float) -> str:
    """Return a duration with two or three digits: "0.4 s", "53 s", "2.8 min", "1.7 h"."""
    if seconds < _MANY:
        return f"{seconds:.1f} s" if seconds < 10 else f"{seconds:.0f} s"  # noqa: PLR2004 - two digits
    return f"{seconds / _MINUTE:.1f} min" if seconds < _MANY * _MINUTE else f"{seconds / _HOUR:.1f} h"


def estimate(seconds: float) -> str:
    """Return a duration that is not certain: "about 53 s"."""
    shown = rounded(seconds)
    return "less than 0.1 s" if shown == rounded(0) else f"about {shown}"
