"""Bars: a picture of the times of all contenders, as SVG."""

from __future__ import annotations

from collections.abc import Sequence

from markupsafe import Markup

from engine.report.page import svg
from frontier.standings import Standings

_ROW, _TOP, _GAP, _NUMBER = 20.0, 34.0, 30.0, 52.0
_FONT = 13
_STYLE = Markup(
    "<style>text { font: 13px system-ui, sans-serif; fill: #1f2430 } .end { text-anchor: end }"
    " .head { font-weight: 600 } .ours { fill: #1f6feb } .rival { fill: #98a2b3 } .weak { fill: #e0a3a3 }"
    " @media (prefers-color-scheme: dark) { text { fill: #e6e9ef } }</style>"
)


def drawn(standings: Sequence[Standings], label: str) -> str:
    """Return the picture: a part for each precision, in it a column for each shape with a scale of its own."""
    names = [each.name for part in standings for each in part.present()]
    left = max(svg.width(name, _FONT) for name in names) + 16
    marks, y = [_STYLE], 0.0
    for part in standings:
        column = (svg.WIDE * 1.4 - left) / len(part.timings)
        marks.append(svg.text((left - 10, y + 20), f"{part.precision}, ms", "head end"))
        for number, shape in enumerate(part.timings):
            marks.append(svg.text((left + number * column, y + 20), shape, "head"))
        for row, each in enumerate(part.present()):
            at = y + _TOP + row * _ROW
            style = "ours" if each.kind == "ours" else "rival" if part.in_class(each.name) else "weak"
            marks.append(svg.text((left - 10, at + 13), each.name, "end"))
            for number, timings in enumerate(part.timings.values()):
                if timings.has(each.name):
                    most = max(timings.median(other.name) for other in part.present() if timings.has(other.name))
                    size = timings.median(each.name) / most * (column - _NUMBER - 10)
                    start = left + number * column
                    marks.append(svg.box((round(start, 1), at + 2), (round(size, 1), _ROW - 5), style))
                    marks.append(svg.text((round(start + size + 4, 1), at + 13), f"{timings.median(each.name):.3g}"))
        y += _TOP + len(list(part.present())) * _ROW + _GAP
    picture = svg.picture(svg.WIDE * 1.4, y, label, marks)
    return str(picture).replace("<svg ", '<svg xmlns="http://www.w3.org/2000/svg" ', 1) + "\n"
