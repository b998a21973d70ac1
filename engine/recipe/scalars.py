"""Reads unquoted words of YAML as values. Words that YAML 1.1 and 1.2 read differently are errors."""

from __future__ import annotations

import re

from engine.recipe.node import Scalar
from engine.recipe.text import shown

_MAX_DIGITS = 400
"""Upper limit of the number of characters in a number of a recipe.

No field of a recipe needs a number of more than 400 characters, and Python itself refuses to convert more than 4,300
digits.
"""
# The core schema of YAML 1.2 (10.3.2), without the forms of numbers that YAML 1.1 and 1.2 read differently.
_INTEGER = re.compile(r"[-+]?(0|[1-9][0-9]*)")
_FLOAT = re.compile(r"[-+]?(0|[1-9][0-9]*)?(\.[0-9]*)?([eE][-+]?[0-9]+)?")
_SPECIAL = re.compile(r"[-+]?\.(inf|Inf|INF)|\.(nan|NaN|NAN)")
_WORDS: dict[str, Scalar] = {"": None, **dict.fromkeys(("null", "Null", "NULL"))}
_WORDS |= dict.fromkeys(("true", "True", "TRUE"), True) | dict.fromkeys(("false", "False", "FALSE"), False)

# Words that are a truth value, a number or a date in YAML 1.1 and a text in YAML 1.2, or the other way round.
_TRUTH = re.compile(r"yes|Yes|YES|no|No|NO|on|On|ON|off|Off|OFF")
_NUMBER = re.compile(
    r"[-+]?0[0-9_]+(\.[0-9_]*)?([eE][-+]?[0-9]+)?"  # 0123 is 83 in YAML 1.1: octal
    r"|[-+]?0[xob][0-9a-fA-F_]+"
    r"|[-+]?[0-9][0-9_]*(:[0-5]?[0-9])+(\.[0-9_]*)?"  # 1:30 is 90 in YAML 1.1: base 60
    r"|[-+]?[0-9]*_[0-9_]*(\.[0-9_]*)?([eE][-+]?[0-9]+)?",
)
_DATE = re.compile(r"[0-9]{4}-[0-9]{1,2}-[0-9]{1,2}([Tt ].*)?")


class UnclearError(ValueError):
    """A word that YAML parsers read differently.

    `hint` tells how to write the word so that all YAML parsers read it alike.
    """

    def __init__(self, what: str, hint: str) -> None:
        super().__init__(what)
        self.hint = hint


def resolve(word: str) -> Scalar:
    """Return the value of an unquoted word of YAML. Raises UnclearError where YAML parsers disagree about the word."""
    if word in _WORDS:
        return _WORDS[word]
    first = word[0]
    if first.isdigit() or first in "+-.":
        return _number(word)
    if word == "~":
        raise UnclearError("`~` unquoted means null", 'write null, or quote the text: "~"')
    if _TRUTH.fullmatch(word):
        raise UnclearError(
            f"`{word}` unquoted is text to some readers of YAML and true or false to others",
            f'where text is meant, quote it: "{word}"; else write true or false',
        )
    return word


def _number(word: str) -> Scalar:
    if _INTEGER.fullmatch(word) or (any(c.isdigit() for c in word) and _FLOAT.fullmatch(word)):
        if len(word) > _MAX_DIGITS:
            raise UnclearError(f"a number of {len(word)} characters", "where text is meant, quote it")
        return int(word) if _INTEGER.fullmatch(word) else float(word)
    if _SPECIAL.fullmatch(word):
        return float(word.replace(".", ""))
    if _NUMBER.fullmatch(word):
        raise UnclearError(
            f"`{shown(word)}` unquoted is text to some readers of YAML and an odd number to others",
            f'where text is meant, quote it: "{shown(word)}"; else write a plain decimal number',
        )
    if _DATE.fullmatch(word):
        raise UnclearError(
            f"`{shown(word)}` unquoted is a date to some readers of YAML and text to others",
            f'quote it: "{shown(word)}"',
        )
    return word
