"""argv -> one command; the only place that prints a traceback-free error and exits."""

from __future__ import annotations

import io
import os
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import NoReturn


def main(argv: Sequence[str] | None = None) -> NoReturn:
    """Run the program and exit with its code."""
    _leave_own_folder()
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")  # a name that the terminal cannot show is no reason to stop
    words = list(sys.argv[1:] if argv is None else argv)
    try:
        if words[:1] == ["build"]:
            from engine import snapshot

            answered = snapshot.answer(words[1:])
            if answered is not None:
                _exit(answered, at_once=argv is None)
        code = _run(words)
    except KeyboardInterrupt:
        code = _interrupted()
    except OSError as error:
        code = _unheard(error)
    sys.exit(code)


def _leave_own_folder() -> None:
    """Take the folder that Python puts in front of the import path off it: tools do not live there.

    It is the working directory or the script's own folder, so that `recipe` and `python -m engine` would differ.
    It stays where the program itself can be imported from nowhere else.
    """
    first = sys.path[0] if sys.path else None
    put_there = ("", os.getcwd(), os.path.dirname(os.path.abspath(sys.argv[0])))
    home = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    if first in put_there and (os.path.realpath(first) != home or home in sys.path[1:]):
        del sys.path[0]


def _exit(code: int, *, at_once: bool) -> NoReturn:
    """Exit; `at_once` leaves out taking the interpreter apart, which is a fifth of an up-to-date build's time."""
    if at_once:
        os._exit(code)
    sys.exit(code)


def _interrupted() -> int:
    sys.stderr.write("interrupted\n")
    return 130


def _unheard(error: OSError) -> int:
    """Whoever read our output has gone (not our error), or it cannot be written. The flush at exit must not fail."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    if isinstance(error, BrokenPipeError):
        return 0
    sys.stderr.write(f"error: what to say cannot be written: {error.strerror}\n")
    return 1


def _run(words: list[str]) -> int:
    import signal

    from engine.commands import parse
    from engine.errors import Exit, UserError

    signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        arguments = parse(words)
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
