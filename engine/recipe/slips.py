"""Slips in YAML: what a line that no parser reads is likely to mean."""

from __future__ import annotations

import re

from engine.recipe.text import shown
from engine.text.places import Text

_EQUALS = r"\s*([A-Za-z_][\w.-]*)\s*=\s*(\S.*?)\s*"
_FIELD = r"(\s*)([A-Za-z_][\w.-]*):( .*)?"
_NO_BLANK = r"\s*([A-Za-z_][\w.-]*):(\S.*?)\s*"
_TWO_FIELDS = r"\s*([A-Za-z_][\w.-]*): +([A-Za-z_][\w.-]*): +(\S.*?)\s*"
_LONGEST = 500
"""The longest line, in characters, whose meaning is guessed."""
_ABOVE = 6
"""How many lines above a line are searched for a field."""


def mend(text: Text, number: int, problem: str) -> str:
    """Return the hint that writes line `number` (from 1) as it is meant; "" where the slip is not known.

    `problem` is what the parser says.
    """
    line = text.raw_line(number)
    if len(line) > _LONGEST:
        return ""
    if line.rstrip().endswith(";"):
        return "leave the semicolon out: the end of a line ends a field"
    if assigned := re.fullmatch(_EQUALS, line):
        return f"write `{assigned[1]}: {shown(assigned[2])}`"
    if "expected ':'" in problem and (close := re.fullmatch(_NO_BLANK, line)):
        return f"a blank is missing behind the colon: `{close[1]}: {shown(close[2])}`"
    if fields := re.fullmatch(_TWO_FIELDS, line):
        meant = f"`{fields[1]}: {{{fields[2]}: {shown(fields[3])}}}`"
        return f"a field in a field stands in braces: {meant}; text with a colon stands in quotes"
    return _indented(text, number, line)


def _indented(text: Text, number: int, line: str) -> str:
    """Return the hint for a field that is not indented as the field above it; "" where the line is no such field."""
    above = next((each for each in range(number - 1, max(number - _ABOVE, 0), -1) if text.raw_line(each).strip()), None)
    field = re.fullmatch(_FIELD, line)
    other = None if above is None else re.fullmatch(_FIELD, text.raw_line(above))
    if field is None or other is None or len(field[1]) == len(other[1]):
        return ""
    above_it, its = len(other[1]), len(field[1])
    return f"indent `{field[2]}` as the fields around it: `{other[2]}` above has {above_it} blanks, it has {its}"
