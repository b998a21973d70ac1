"""argv -> one command; the only place that prints a traceback-free error and exits."""

from __future__ import annotations

import os
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import NoReturn


def main(argv: Sequence[str] | None = None) -> NoReturn:
    """Run the program and exit with its code."""
    _leave_own_folder()
    words = list(sys.argv[1:] if argv is None else argv)
    code = None
    if words[:1] == ["build"]:
        from engine import snapshot

        code = snapshot.answer(words[1:])
    sys.exit(_run(words) if code is None else code)


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
    except KeyboardInterrupt:
        sys.stderr.write("interrupted\n")
        return int(Exit.INTERRUPTED)
    except BrokenPipeError:
        # Whoever read our output has gone: not our error. The flush at exit must not fail either.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return int(Exit.OK)
    except Exception as error:
        if "--debug" in words:
            raise
        sys.stderr.write(
            f"error: an error in recipe itself: {type(error).__name__}: {error}\n"
            "hint: run the same command with --debug, and report what it prints\n"
        )
        return int(Exit.FAILED)
