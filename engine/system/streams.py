"""The standard streams of the program: a closed one leads nowhere, a lost one is an error with its own name."""

# An up-to-date build imports this module, so the module imports only what Python has loaded already.

from __future__ import annotations

import codecs
import io
import os
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import TextIO

    from _typeshed import ReadableBuffer

_STDIN, _STDOUT, _STDERR = range(3)
_ERRORS = "recipe.escape"


class _Text(io.TextIOWrapper):
    """A text file that changes each text by `redact` before it writes it, and folds lines longer than `width`."""

    redact: Callable[[str], str] = str
    width: int | None = None

    def write(self, text: str, /) -> int:
        shown = type(self).redact(text)
        super().write(shown if self.width is None else folded(shown, self.width))
        return len(text)


def redact(by: Callable[[str], str]) -> None:
    """Let the standard streams write every text as `by` returns it: without secrets."""
    _Text.redact = staticmethod(by)


def columns() -> int | None:
    """Return the width of the terminal to which standard output leads; None where it leads elsewhere."""
    try:
        return os.get_terminal_size(_STDOUT).columns or None
    except OSError:
        return None


def fold() -> None:
    """Let standard output fold the lines that are longer than its terminal is wide."""
    if isinstance(sys.stdout, _Text):
        sys.stdout.width = columns()


def folded(text: str, width: int) -> str:
    """Return a text with longer lines folded between words; what follows stands further right. No word is cut."""
    return "\n".join(piece for line in text.split("\n") for piece in _pieces(line, width))


def _pieces(line: str, width: int) -> Iterator[str]:
    inner = len(line) - len(line.lstrip()) + 2
    while len(line) > width:
        at = line.rfind(" ", inner, width + 1)
        at = at if at > 0 else line.find(" ", width)
        if at < 0:
            break
        yield line[:at].rstrip()
        line = " " * inner + line[at:].lstrip()
    yield line


class OutputError(OSError):
    """Standard output cannot be written, for example because its disk is full."""


class _Output(io.FileIO):
    """Standard output: a failed write is an OutputError, and a pipe without a reader a BrokenPipeError."""

    def write(self, data: ReadableBuffer, /) -> int:
        try:
            return super().write(data)
        except BrokenPipeError:
            raise
        except OSError as error:
            raise OutputError(error.errno, error.strerror) from error


class _Messages(io.FileIO):
    """Standard error: what cannot be written is lost, because messages never change the result of a command."""

    def write(self, data: ReadableBuffer, /) -> int:
        try:
            return super().write(data)
        except OSError:
            return memoryview(data).nbytes


def protect() -> None:
    """Make the standard streams safe to use, whatever the caller of the program has left of them.

    A closed stream becomes the null device: otherwise the next file that the program opens would be taken for the
    stream. Raises OSError if the null device cannot be opened.
    """
    for number in (_STDIN, _STDOUT, _STDERR):
        _fill(number)
    codecs.register_error(_ERRORS, _escaped)
    if sys.stdin is None:
        sys.stdin = io.TextIOWrapper(io.BufferedReader(io.FileIO(_STDIN, closefd=False)))
    sys.stdout = _text(_Output(_STDOUT, "w", closefd=False), sys.stdout)
    sys.stderr = _text(_Messages(_STDERR, "w", closefd=False), sys.stderr)


def give_up_output() -> None:
    """Lead standard output nowhere, so that what is still to be written does not fail again."""
    null = os.open(os.devnull, os.O_WRONLY)
    os.dup2(null, _STDOUT)
    os.close(null)


def write_last(text: str = "") -> None:
    """Write the last text of a finished command. A reader that went away does not change the command's exit code.

    Raises OSError for any other failure to write.
    """
    try:
        sys.stdout.write(text)
        sys.stdout.flush()
    except BrokenPipeError:
        give_up_output()


def _fill(number: int) -> None:
    """Open the null device as a standard stream that is closed; the lower streams are open already."""
    try:
        os.fstat(number)
    except OSError:
        os.set_inheritable(os.open(os.devnull, os.O_RDWR), True)  # noqa: FBT003 - the only form of the call


def _text(raw: io.FileIO, before: TextIO | None) -> io.TextIOWrapper:
    """Return the text file of a standard stream; `before` is the text file that Python itself has made."""
    encoding = getattr(before, "encoding", None) or "utf-8"
    return _Text(
        io.BufferedWriter(raw), encoding, _ERRORS, newline="\n", line_buffering=raw.isatty() or raw.fileno() == _STDERR
    )


def _escaped(error: UnicodeError) -> tuple[str, int]:
    r"""Return characters that the stream cannot show as \uXXXX, which is right within JSON, too."""
    if not isinstance(error, UnicodeEncodeError):
        raise error
    raw = error.object[error.start : error.end].encode("utf-16-be", "surrogatepass")
    return "".join(f"\\u{raw[at : at + 2].hex()}" for at in range(0, len(raw), 2)), error.end
