"""SVG: axes, scales and marks, as text that a browser draws in the page's own colours."""

from __future__ import annotations

import math
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass

from markupsafe import Markup

WIDE, NARROW = 720.0, 328.0
"""The widths of pictures in pixels. The narrow one is shown whole on a page of 360: margins take 16 on each side."""
_STEPS = (1.0, 2.0, 5.0, 10.0)
_APART = 40
"""The least distance between the labels of a horizontal axis, in pixels: a tick that is nearer has a line alone."""
_LOGARITHMIC = 10.0
"""The ratio of the largest to the smallest value from which on a scale is logarithmic."""


@dataclass(frozen=True)
class Scale:
    """A scale from values to places in the picture, in pixels."""

    low: float
    high: float
    start: float
    end: float
    logarithmic: bool = False

    def __call__(self, value: float) -> float:
        """Return the place of a value."""
        low, high, at = self.low, self.high, value
        if self.logarithmic:
            low, high, at = math.log10(low), math.log10(high), math.log10(max(value, 1e-12))
        share = (at - low) / (high - low) if high > low else 0.5
        return round(self.start + share * (self.end - self.start), 1)

    def ticks(self, count: int = 6) -> list[float]:
        """Return round values within the scale."""
        if self.logarithmic:
            decades = range(math.floor(math.log10(self.low)), math.ceil(math.log10(self.high)) + 1)
            every = [step * 10.0**decade for decade in decades for step in _STEPS[:-1]]
            return [each for each in every if self.low <= each <= self.high]
        width = (self.high - self.low) / max(1, count - 1)
        if width <= 0:
            return [self.low]
        power = 10 ** math.floor(math.log10(width))
        step = next(each * power for each in _STEPS if each * power >= width * 0.999)
        first = math.ceil(self.low / step - 1e-9)
        last = math.floor(self.high / step + 1e-9)
        return [round(number * step, 12) for number in range(first, last + 1)]


def scale(values: Sequence[float], start: float, end: float, *, from_zero: bool = False) -> Scale:
    """Return a scale for positive values, logarithmic if they span more than a factor of ten, with some room."""
    low, high = min(values), max(values)
    if not from_zero and low > 0 and high / low > _LOGARITHMIC:
        return Scale(low / 1.15, high * 1.15, start, end, logarithmic=True)
    room = (high - low) * 0.08 or abs(high) * 0.08 or 1.0
    return Scale(0.0 if from_zero or (low >= 0 and low - room < 0) else low - room, high + room, start, end)


def picture(width: float, height: float, label: str, content: Sequence[Markup]) -> Markup:
    """Return a picture with a label for screen readers. Its numbers stand in the table beside it, too."""
    head = Markup('<svg viewBox="0 0 {} {}" width="{}" height="{}" role="img" aria-label="{}">')
    return head.format(width, height, width, height, label) + Markup("\n").join(content) + Markup("</svg>")


def width(words: str, size: float = 13) -> float:
    """Return about how many pixels a text needs at most, in the widest of the usual fonts, bold."""
    return size * sum(_share(letter) for letter in words)


def _share(letter: str) -> float:
    """Return the width of a letter as a share of the size of the font."""
    if letter in "iljtfr.,:;()'| -·":
        return 0.5
    wide = letter in "mwMW@%" or unicodedata.east_asian_width(letter) in "WF"
    return 1.1 if wide else 0.88 if letter.isupper() else 0.74


def fitted(words: str, room: float, size: float = 13) -> str:
    """Return a text that needs at most so many pixels: the middle of a longer one is left out."""
    if width(words, size) <= room:
        return words
    for kept in range(len(words) - 1, 0, -1):
        shorter = f"{words[: kept // 2]}…{words[len(words) - (kept - kept // 2) :]}"
        if width(shorter, size) <= room:
            return shorter
    return "…"


def line(start: tuple[float, float], end: tuple[float, float], style: str) -> Markup:
    """Return a straight line."""
    return Markup('<line x1="{}" y1="{}" x2="{}" y2="{}" class="{}"/>').format(*start, *end, style)


def text(at: tuple[float, float], words: object, style: str = "") -> Markup:
    """Return a text; the style `end` aligns it to its right end, `middle` to its middle."""
    return Markup('<text x="{}" y="{}" class="{}">{}</text>').format(*at, style, words)


def inside(mark: Markup) -> Markup:
    """Return a marked number for use inside of a text."""
    return mark.replace(Markup("<span"), Markup("<tspan")).replace(Markup("</span>"), Markup("</tspan>"))


def circle(at: tuple[float, float], radius: float, style: str, title: str = "") -> Markup:
    """Return a circle, with a title that shows when the pointer rests on it."""
    inner = Markup("<title>{}</title>").format(title) if title else ""
    return Markup('<circle cx="{}" cy="{}" r="{}" class="{}">{}</circle>').format(*at, radius, style, inner)


def box(at: tuple[float, float], size: tuple[float, float], style: str) -> Markup:
    """Return a rectangle with round corners."""
    return Markup('<rect x="{}" y="{}" width="{}" height="{}" rx="3" class="{}"/>').format(*at, *size, style)


def path(points: Sequence[tuple[float, float]], style: str) -> Markup:
    """Return a line through points."""
    joined = " L ".join(f"{x:g} {y:g}" for x, y in points)
    return Markup('<path d="M {}" class="{}"/>').format(joined, style)


def across(scale_: Scale, top: float, bottom: float, title: str) -> list[Markup]:
    """Return a horizontal axis at `bottom`, with lines up to `top`."""
    marks = []
    last = -math.inf
    for tick in scale_.ticks():
        x = scale_(tick)
        marks.append(line((x, top), (x, bottom), "grid"))
        if x - last >= _APART:
            marks.append(text((x, bottom + 16), f"{tick:.6g}", "tick middle"))
            last = x
    return [*marks, text((scale_.end, bottom + 34), title, "tick end")]


def upwards(scale_: Scale, left: float, right: float, title: str) -> list[Markup]:
    """Return a vertical axis at `left`, with lines to `right`."""
    marks = []
    for tick in scale_.ticks(5):
        y = scale_(tick)
        marks += [line((left, y), (right, y), "grid"), text((left - 6, y + 4), f"{tick:.6g}", "tick end")]
    return [*marks, text((left, scale_.end - 12), title, "tick")]
