"""The command line: runs one command, prints its error without a traceback, and exits."""

from __future__ import annotations

import os
import sys

from engine.system import streams

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import NoReturn

    from engine.snapshot import ChangedFiles


_INTERRUPTED = 130
"""The exit code after Ctrl-C.

As in shells, the exit code after Ctrl-C is 128 plus 2, the number of the signal SIGINT.
"""
_DEBUG = "--debug"
_REMOTE = "engine.store.remote.background"
"""The module whose import starts the threads of a remote."""
_FOR_PEOPLE = {
    "build", "cache", "check", "diff", "doctor", "gpus", "graph", "history", "loadtest", "show", "steps", "why",
}  # fmt: skip
"""The commands whose lines are folded on a narrow terminal, unless their options ask for another form."""
_OTHER_FORMS = ("--json", "--csv", "--markdown", "--format")
_WORKING = {
    "build", "cache", "check", "loadtest", "lock", "new", "package", "prove", "publish", "query", "report", "serve",
}  # fmt: skip
"""The commands whose exit code 0 states more than that a text was printed."""


def main(argv: Sequence[str] | None = None) -> NoReturn:
    """Run the program and exit with its code."""
    words = _with_colors(sys.argv[1:] if argv is None else argv)
    try:
        if argv is None:
            _begin()
        _leave_own_folder()
        words = _in_folder(words)
        _note_misspelt_variables()
        _fold(words)
        answered = _no_op(words)
        code = answered if isinstance(answered, int) else _run(words, answered)
        streams.write_last()
    except KeyboardInterrupt:
        code = _interrupted()
    except (BrokenPipeError, streams.OutputError) as error:
        code = _output_lost(error, words)
    except Exception as error:
        if _DEBUG in words:
            raise
        code = _failed(error)
    finally:
        if argv is not None:  # the program itself ends, and until then an interruption changes nothing
            from engine.system import interrupts

            interrupts.restore()
    if argv is None:
        _write_what_is_left()
        if _REMOTE in sys.modules:
            _end_without_clean_up(code)
    sys.exit(code)


def _with_colors(words: Sequence[str]) -> list[str]:
    """Return a command line without the option --color, which holds for all that the program prints."""
    if not any(word.startswith("--color") for word in words):
        return list(words)
    from engine.system import colors

    return colors.take(words)


def _fold(words: Sequence[str]) -> None:
    """Let the lines of a command for people be as short as the terminal is narrow."""
    if _FOR_PEOPLE.intersection(words[:1]) and not any(word.startswith(_OTHER_FORMS) for word in words):
        streams.fold()


def _begin() -> None:
    """Make the standard streams safe; answer a shell that completes a command line, and end then.

    Plugins of pydantic stay out: they could change how a recipe is read, and the search for them takes a twentieth of
    the time of `recipe check`.
    """
    _speak_utf8()
    streams.protect()
    os.environ.setdefault("PYDANTIC_DISABLE_PLUGINS", "__all__")
    if "_ARGCOMPLETE" in os.environ:
        from engine import commands

        commands.complete(os.environ.get("COMP_LINE", ""))
        sys.exit(0)


def _speak_utf8() -> None:
    """Start Python again in its UTF-8 mode where Python names files in another encoding, such as that of `LC_ALL=C`.

    Recipes and workers name files in UTF-8. What the program reads and prints stays in the encoding of the locale.
    """
    encoding = sys.getfilesystemencoding()
    if encoding != "utf-8" and sys.executable and "utf8" not in sys._xoptions:  # noqa: SLF001 - its name in the docs
        os.environ.setdefault("PYTHONIOENCODING", f"{encoding}:surrogateescape")
        os.execv(sys.executable, [sys.executable, "-X", "utf8", *sys.orig_argv[1:]])  # noqa: S606


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


def _in_folder(words: list[str]) -> list[str]:
    """Return a command line without `-C DIR`, and change to that folder. Raises UsageError."""
    if not any(word.startswith("-C") for word in words):
        return words
    from engine.system import folders

    return folders.enter(words)


def _note_misspelt_variables() -> None:
    """Print a note for each environment variable that looks like a misspelt one of this program: RECIPE_CAHCE."""
    if any(name.startswith("RECIPE_") for name in os.environ):
        from engine.system import variables

        sys.stderr.writelines(f"note: {note}\n" for note in variables.notes(os.environ))


def _no_op(words: list[str]) -> int | ChangedFiles | None:
    """Answer a build in which nothing changed from its snapshot; otherwise return what changed, if that is known."""
    if words[:1] != ["build"] or os.environ.get("GITLAB_CI"):  # GitLab gets a report of the jobs
        return None
    from engine import snapshot

    return snapshot.answer(words[1:])


def _end_without_clean_up(code: int) -> NoReturn:
    """End a program that has used a remote; what modules have registered to run at the end still runs.

    Before Python 3.14, a thread of obstore that comes back to Python during Python's clean-up aborts the process
    (python/cpython issue 87135). And Python would wait for a thread that asks a name server.
    """
    import atexit

    atexit._run_exitfuncs()  # noqa: SLF001  no public function runs them
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)


def _write_what_is_left() -> None:
    """Write what is left of standard output, wherever it leads."""
    try:
        streams.write_last()
    except OSError:
        streams.give_up_output()


def _interrupted() -> int:
    """Return the exit code after Ctrl-C.

    Python ends by the signal, whatever the program returns, if Ctrl-C came while `exec` ran a text, as the modules of
    dataclasses do. It forgets that at the next `exec` of a text.
    """
    sys.stderr.write("interrupted\n")
    exec("")  # noqa: S102
    return _INTERRUPTED


def _output_lost(error: OSError, words: Sequence[str]) -> int:
    """Return the exit code after a failure to write the output of a command that has not finished.

    The exit code is 0 only where the reader closed its pipe and the command does nothing but print. A build that ends
    early has not built its recipes.
    """
    streams.give_up_output()
    if isinstance(error, BrokenPipeError):
        return int(bool(set(words[:1]) & _WORKING))
    sys.stderr.write(f"error: the output cannot be written: {error.strerror}\n")
    return 1


def _run(words: list[str], changes: ChangedFiles | None) -> int:
    import signal

    from engine.commands import parse
    from engine.text import redaction

    redaction.learn(words)
    streams.redact(redaction.redacted)
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    if signal.getsignal(signal.SIGHUP) is signal.SIG_DFL:  # `nohup` ignores it: a build goes on without its terminal
        signal.signal(signal.SIGHUP, signal.default_int_handler)
    try:
        arguments = parse(words)
        arguments.changes = changes
        return int(arguments.run(arguments))
    except SystemExit as ended:  # of `--help` and `--version`
        return ended.code if isinstance(ended.code, int) else 0


def _failed(error: Exception) -> int:
    """Print an error with its cause and a hint, and return the exit code."""
    try:
        text, code = _explained(error)
    except MemoryError:  # there is no room left for the modules that explain
        text, code = "the memory is used up\nhint: close other programs, or use a machine with more memory", 1
    from engine.system import colors

    sys.stderr.write(f"{colors.error(f'error: {text}', sys.stderr)}\n")
    _tell_ci(error)
    return code


def _tell_ci(error: Exception) -> None:
    """Annotate an error of the user on GitHub, and write it into the report of GitLab."""
    on_github, on_gitlab = (os.environ.get(name) == "true" for name in ("GITHUB_ACTIONS", "GITLAB_CI"))
    if not (on_github or on_gitlab):
        return
    from engine.errors import UserError
    from engine.report import ci

    if on_github and isinstance(error, UserError):
        sys.stderr.writelines(f"{line}\n" for line in ci.github_commands(error))
    if on_gitlab and isinstance(error, UserError):
        ci.write_junit_error(error)


def _explained(error: Exception) -> tuple[str, int]:
    """Return the text about an error, and the exit code."""
    from engine.errors import Exit, UserError
    from engine.system.limits import failure

    known = error if isinstance(error, UserError) else failure(error)
    if known is not None:
        return str(known), int(known.exit)
    what = f"an error in recipe itself: {type(error).__name__}: {error}"
    return f"{what}\nhint: run the same command with --debug, and report what it prints", int(Exit.FAILED)
