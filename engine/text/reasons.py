"""Reasons: why something was not done, and errors of other libraries, in words for a log, an error and a report."""

from __future__ import annotations

import re
import traceback
from pathlib import Path

from engine.text import display

_ESCAPES = r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)|[@-Z\\-_])|[\x00-\x08\x0b-\x1f\x7f]"
"""Escape sequences of terminals, such as colours (ECMA-48), and control characters; tabs and line ends stay."""
_WRAPPED = "of exporting the model to ONNX"
"""Words of the advice with which PyTorch's exporter hides why it failed; its cause is the error behind it."""
_ADVICE = (
    r"^(For (more|extended|C\+\+)|Set TORCHDYNAMO|If you suspect|consider using|Caused by|The following call|Refer to)"
)
"""The beginnings of lines that advise the developers of PyTorch."""
_SPEAKING = ("RuntimeError", "ValueError", "OSError", "ImportError", "ModuleNotFoundError", "NotImplementedError")
"""Classes of Python's own errors whose texts are sentences, clear without the name of the class."""
_OF_ITS_CALLER = "trust_remote_code=True"
"""What transformers asks its caller to pass for a checkpoint with code of its own: no recipe can say it."""
_LISTED = 8
"""The largest number of lines of a library's message that an error quotes."""


def of_error(error: BaseException) -> str:
    """Return an error's text on one line, with the class of the error where the text alone says too little."""
    return display.one_line(_worded(_root(error)), display.MOST_OF_ERROR)


def because(what: str, error: BaseException) -> str:
    """Return a sentence that gives an error as its reason: "it could not be tried: no such file"."""
    return f"{what}: {of_error(error)}"


def first_line(error: BaseException, *, without: str = "") -> str:
    """Return the first line of an error's text, without each occurrence of a text such as the path of a folder.

    The function that raised the error stands behind a line that says little, as that of a KeyError.
    """
    first, *rest = facts(error, without=without)
    return first if _speaks(_root(error)) or not rest else f"{first} ({rest[-1]})"


def facts(error: BaseException, *, without: str = "") -> list[str]:
    """Return an exception of a library as lines with details for an error: at least one line, and at most eight.

    The lines have no control characters, no advice for developers of the library, and no text `without`, such as the
    path of a folder. If the exception's own text says little, as that of a KeyError, the first line has its class and
    the last line the function that raised it.
    """
    root = _root(error)
    text = _worded(root)
    every = [line.strip() for line in (text.replace(without, "") if without else text).splitlines()]
    kept = [line for line in every if line and not re.match(_ADVICE, line)]
    place = [] if _speaks(root) else _place(root)
    return [*(kept or [type(root).__name__])[: _LISTED - len(place)], *place]


def plain(text: str) -> str:
    """Return a text without escape sequences of terminals and without control characters."""
    return re.sub(_ESCAPES, "", text)


def _root(error: BaseException) -> BaseException:
    """Return the error behind an error of PyTorch's exporter; any other error is returned unchanged."""
    return error.__cause__ if error.__cause__ is not None and _WRAPPED in plain(str(error)) else error


def _worded(error: BaseException) -> str:
    """Return an error's text; "KeyError: there is no entry 'x'" and the like where the text alone says too little."""
    name, text = type(error).__name__, plain(str(error)).strip()
    if _OF_ITS_CALLER in text:
        return "the checkpoint has code of its own, and that code is never run (trust_remote_code)"
    if isinstance(error, KeyError) and text:
        return f"{name}: there is no entry {text}"
    if not text:
        return f"{name} without a message"
    return text if _speaks(error) else f"{name}: {text}"


def _speaks(error: BaseException) -> bool:
    """Whether an error's text is clear without the name of its class, as the texts of libraries' own classes are."""
    name, module = type(error).__name__, type(error).__module__
    return bool(str(error).strip()) and (name in _SPEAKING or module != "builtins") and not isinstance(error, KeyError)


def _place(error: BaseException) -> list[str]:
    """Return a line with the function and the file that raised an error; [] for an error that was never raised."""
    frames = traceback.extract_tb(error.__traceback__)
    if not frames:
        return []
    last = frames[-1]
    return [f"raised by {last.name} in {'/'.join(Path(last.filename).parts[-2:])}, line {last.lineno}"]
