"""The command line: runs one command, prints its error without a traceback, and exits."""

from __future__ import annotations

import io
import os
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import NoReturn

    from engine.snapshot import Comparison


_INTERRUPTED = 130
"""The exit code after Ctrl-C.

As in shells, the exit code after Ctrl-C is 128 plus 2, the number of the signal SIGINT.
"""


def main(argv: Sequence[str] | None = None) -> NoReturn:
    """Run the program and exit with its code."""
    _leave_own_folder()
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")  # for names that the terminal cannot show
    words = list(sys.argv[1:] if argv is None else argv)
    comparison = None
    try:
        if words[:1] == ["build"]:
            from engine import snapshot

            answered = snapshot.answer(words[1:])
            if isinstance(answered, int):
                _exit(answered, at_once=argv is None)
            comparison = answered
        code = _run(words, comparison)
    except KeyboardInterrupt:
        code = _interrupted()
    except OSError as error:
        code = _output_lost(error)
    sys.exit(code)


def _leave_own_folder() -> None:
    """Remove the first folder of the import path (`sys.path`), which Python itself puts there.

    The first folder on the import path is the working directory for `python -m engine`, and the script's folder for
    `recipe`. With different folders on the import path, `python -m engine` and `recipe` could import different versions
    of a tool. The folder stays on the import path if no other folder of the import path contains this program.
    """
    first = sys.path[0] if sys.path else None
    put_there = ("", os.getcwd(), os.path.dirname(os.path.abspath(sys.argv[0])))
    home = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    if first in put_there and (os.path.realpath(first) != home or home in sys.path[1:]):
        del sys.path[0]


def _exit(code: int, *, at_once: bool) -> NoReturn:
    """Exit.

    If `at_once` is true, Python skips its clean-up at exit, which saves a fifth of the time of a build in which nothing
    changed.
    """
    if at_once:
        os._exit(code)
    sys.exit(code)


def _interrupted() -> int:
    sys.stderr.write("interrupted\n")
    return _INTERRUPTED


def _output_lost(error: OSError) -> int:
    """Return the exit code after a failure to write the output: 0 where the reader closed its pipe, else 1.

    `_output_lost` also redirects stdout to the null device, so that the flush of stdout at exit does not fail.
    """
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    if isinstance(error, BrokenPipeError):
        return 0
    sys.stderr.write(f"error: the output cannot be written: {error.strerror}\n")
    return 1


def _run(words: list[str], comparison: Comparison | None) -> int:
    import signal

    from engine.commands import parse
    from engine.errors import Exit, UserError

    signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        arguments = parse(words)
        arguments.comparison = comparison
        return int(arguments.run(arguments))
    except UserError as error:
        if "--debug" in words:
            raise
        sys.stderr.write(f"error: {error}\n")
        return int(error.exit)
    except BrokenPipeError:
        raise
    except Exception as error:
        if "--debug" in words:
            raise
        sys.stderr.write(
            f"error: an error in recipe itself: {type(error).__name__}: {error}\n"
            "hint: run the same command with --debug, and report what it prints\n"
        )
        return int(Exit.FAILED)
