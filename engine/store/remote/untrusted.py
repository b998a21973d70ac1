"""JSON from a remote: its depth is bounded before it is parsed."""

from __future__ import annotations

import json
import re
from typing import Any

DEPTH = 100
"""The most open lists and objects at any place. A record has 8."""

_STRING_OR_BRACKET = re.compile(r'"(?:[^"\\]+|\\.?)*"?|[][{}]', re.DOTALL)


def parse(raw: bytes) -> Any:
    """Return the value of JSON in UTF-8. Raises ValueError for other bytes, and for JSON deeper than DEPTH.

    Python's own parser stops at the interpreter's limit of recursion. Its stack is then nearly full, and the
    garbage collection that runs there cannot clean up what has nothing to do with the JSON.
    """
    text = raw.decode()
    if _openings(text) > DEPTH and _depth(text) > DEPTH:
        raise ValueError(f"more than {DEPTH} lists and objects are within each other")
    return json.loads(text)


def _openings(text: str) -> int:
    """Return a bound of the depth that costs nothing."""
    return text.count("[") + text.count("{")


def _depth(text: str) -> int:
    deepest = depth = 0
    for match in _STRING_OR_BRACKET.finditer(text):
        if match[0] in "[{":
            depth += 1
            deepest = max(deepest, depth)
        elif match[0] in "]}":
            depth -= 1
    return deepest
