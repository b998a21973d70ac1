"""Programs: runs a program with a limit of time, and reads what it wrote last."""

from __future__ import annotations

import subprocess
from collections.abc import Sequence

_TIMED_OUT, _CANNOT_RUN = 124, 126
"""Exit codes of a program that takes too long (124, as in timeout(1)) or cannot run (126, as in shells)."""


def run(command: Sequence[str], *, seconds: float, text: str = "") -> subprocess.CompletedProcess[str]:
    """Run a command with `text` on its standard input.

    Where the command cannot run or takes too long, the exit code is not 0 and the error output says why.
    """
    try:
        return subprocess.run(  # noqa: S603 - the callers choose the programs
            command, input=text, capture_output=True, text=True, errors="replace", timeout=seconds, check=False
        )
    except subprocess.TimeoutExpired:
        return subprocess.CompletedProcess(command, _TIMED_OUT, "", f"no answer within {seconds:.0f} s")
    except OSError as error:
        return subprocess.CompletedProcess(command, _CANNOT_RUN, "", str(error))


def last_line(done: subprocess.CompletedProcess[str]) -> str:
    """Return the last line of a command's output, else its exit code.

    The standard error of a failed command, and the standard output of any other command, is read first.
    """
    outputs = (done.stderr, done.stdout) if done.returncode else (done.stdout, done.stderr)
    written = [output.strip() for output in outputs if output.strip()]
    return written[0].splitlines()[-1] if written else f"exit {done.returncode}"
