"""Reasons: why something was not done, in words for the log, an error and a report."""

from __future__ import annotations

from engine.text import lines

shapes_output = False
"""The texts of this module shape no output of a step, although they are returned and not raised."""


def of_error(error: BaseException) -> str:
    """Return an error's text on one line; the name of its class where the error has no text."""
    return lines.one_line(str(error), lines.ERROR) or type(error).__name__


def because(what: str, error: BaseException) -> str:
    """Return a sentence that gives an error as its reason: "it could not be tried: no such file"."""
    return f"{what}: {of_error(error)}"


def first_line(error: BaseException, *, without: str = "") -> str:
    """Return the first line of an error's text, without each occurrence of a text such as the path of a folder."""
    return (str(error).strip() or type(error).__name__).splitlines()[0].replace(without, "")
