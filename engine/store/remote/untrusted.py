"""JSON from a remote: its depth is bounded before it is parsed, and what is wrong with it is named."""

from __future__ import annotations

import binascii
import json
import math
import re
from typing import Any

DEPTH = 100
"""The most open lists and objects at any place. A record has 8."""

_SURROGATES = ("\\ud", "\\uD")
_STRING_OR_BRACKET = re.compile(r'"(?:[^"\\]+|\\.?)*"?|[][{}]', re.DOTALL)


WRONG = (ArithmeticError, ValueError, LookupError, TypeError, AttributeError, StopIteration, RecursionError)
"""The errors of code that reads fields of JSON that have another form than expected."""


class TooDeepError(ValueError):
    """More than DEPTH lists and objects are within each other."""


def parse(raw: bytes) -> Any:
    """Return the value of JSON in UTF-8. Raises ValueError for other bytes, and TooDeepError.

    Numbers are finite, and texts can be written as UTF-8.

    Python's own parser stops at the interpreter's limit of recursion. Its stack is then nearly full, and the
    garbage collection that runs there cannot clean up what has nothing to do with the JSON.
    """
    text = raw.decode()
    if _openings(text) > DEPTH and _depth(text) > DEPTH:
        raise TooDeepError(f"more than {DEPTH} lists and objects are within each other")
    value = _DECODER.decode(text)
    if any(each in text for each in _SURROGATES):
        json.dumps(value, ensure_ascii=False).encode()  # a half of a pair is no text, and no later code can write it
    return value


def _finite(text: str) -> float:
    """Return a number. Raises ValueError for one that is not finite: no record of ours has such a number."""
    number = float(text)
    if not math.isfinite(number):
        raise ValueError("a number is not finite")
    return number


_DECODER = json.JSONDecoder(parse_float=_finite, parse_constant=_finite)
"""One for all texts: to make a decoder costs as much as to read a short text."""


def fault(error: BaseException) -> str:
    """Return what is wrong with JSON, from an error in WRONG. The text has nothing that the JSON's writer chose."""
    match error:
        case json.JSONDecodeError():
            text = f"no JSON from line {error.lineno}, column {error.colno} on"
        case TooDeepError():
            text = str(error)
        case UnicodeDecodeError():
            text = f"no UTF-8 from byte {error.start} on"
        case binascii.Error():
            text = "a value is not in base64"
        case UnicodeEncodeError():
            text = "a text has half of a surrogate pair"
        case KeyError():
            text = f"{error.args[0]!r} is missing"
        case StopIteration():
            text = "the record is missing"
        case TypeError() | AttributeError():
            text = "a value has another type"
        case _:
            text = "a value is wrong"
    return text


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
