"""Labels: the names of points in a picture, beside their points, so that no label covers another one or a point."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from markupsafe import Markup

from engine.report.page import svg

_SIZE = 12
"""The size of the font in pixels."""
_HIGH = 15.0
"""The height of a label."""
_BESIDE = 9.0
"""The distance of a label from its point."""


class Box(NamedTuple):
    """A rectangle in a picture, in pixels."""

    left: float
    top: float
    right: float
    bottom: float

    def covers(self, other: Box) -> bool:
        """Tell whether two rectangles have a point in common."""
        return (
            self.left < other.right and other.left < self.right and self.top < other.bottom and other.top < self.bottom
        )

    def holds(self, other: Box) -> bool:
        """Tell whether the other rectangle lies inside of this one."""
        return (
            self.left <= other.left
            and self.top <= other.top
            and other.right <= self.right
            and other.bottom <= self.bottom
        )


def drawn(points: Sequence[tuple[float, float]], names: Sequence[str], area: Box) -> list[Markup]:
    """Return the names of points, the first ones first; a name without room inside of `area` is left out.

    A thin line joins a name with its point where the nearest places are taken.
    """
    taken = [Box(x - 6, y - 6, x + 6, y + 6) for x, y in points]
    marks = []
    for (x, y), name in zip(points, names, strict=True):
        words = svg.fitted(name, (area.right - area.left) * 0.6, _SIZE)
        for place in _places(x, y, svg.width(words, _SIZE)):
            if area.holds(place) and not any(place.covers(other) for other in taken):
                taken.append(place)
                middle = (place.top + place.bottom) / 2
                near = place.left if place.left > x else place.right
                if abs(middle - y) > _HIGH / 2:
                    marks.append(svg.line((x, y), (near, middle), "lead"))
                style = "label" if place.left > x else "label end"
                marks.append(svg.text((near, middle + 4), words, style))
                break
    return marks


def _places(x: float, y: float, wide: float) -> Iterator[Box]:
    """Yield the places for a label of this width, the nearest first: right and left of its point, above and below."""
    for step in range(40):
        down = (step + 1) // 2 * _HIGH * (1 if step % 2 else -1)
        for left in (x + _BESIDE, x - _BESIDE - wide):
            yield Box(left, y + down - _HIGH / 2, left + wide, y + down + _HIGH / 2)
