"""The real command line in a pseudo-terminal of a given size, and what its screen shows over time."""

from __future__ import annotations

import fcntl
import os
import pty
import select
import signal
import struct
import sys
import termios
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import pyte

PATIENCE = 300.0
"""Seconds after which a build that does not end is an error."""


@dataclass
class Recording:
    """What a command showed: its screens in their order, each a list of lines, and all lines that it ever printed."""

    columns: int
    rows: int
    screens: list[list[str]] = field(default_factory=list)
    history: list[str] = field(default_factory=list)
    code: int | None = None
    raw: bytes = b""

    @property
    def last(self) -> list[str]:
        """The lines on the screen after the end, without empty ones, with those that have left it above."""
        return [line for line in self.history if line.strip()]

    def has_shown(self, *texts: str) -> bool:
        """Tell whether one screen held all of the texts at once."""
        return any(all(text in "\n".join(screen) for text in texts) for screen in self.screens)


def record(
    words: Sequence[str],
    folder: Path,
    *,
    columns: int,
    rows: int,
    environment: dict[str, str] | None = None,
    until: Callable[[list[str]], bool] = lambda _: False,
) -> Recording:
    """Run `recipe` with the words in a terminal. When `until` is true of a screen, Ctrl-C is pressed, once."""
    recording = Recording(columns, rows)
    screen = pyte.HistoryScreen(columns, rows, history=100_000, ratio=1)
    stream = pyte.ByteStream(screen)
    child, master = pty.fork()
    if child == 0:
        os.chdir(folder)
        signal.signal(signal.SIGINT, signal.SIG_DFL)  # a shell ignores it for what it starts in the background
        own = {name: value for name, value in os.environ.items() if not name.startswith(("RECIPE_", "CI", "GITHUB_"))}
        own["TERM"] = "xterm-256color"
        for name in ("COLUMNS", "LINES", "NO_COLOR", "FORCE_COLOR"):
            own.pop(name, None)
        own |= environment or {}
        os.execve(sys.executable, [sys.executable, "-m", "engine", *words], own)
    fcntl.ioctl(master, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))
    pressed, end = False, time.monotonic() + PATIENCE
    try:
        while time.monotonic() < end:
            if not select.select([master], [], [], 0.2)[0]:
                continue
            try:
                data = os.read(master, 1 << 16)
            except OSError:
                data = b""
            if not data:
                break
            recording.raw += data
            stream.feed(data)
            shown = [line.rstrip() for line in screen.display]
            if not recording.screens or shown != recording.screens[-1]:
                recording.screens.append(shown)
            if not pressed and until(shown):
                pressed = True
                os.write(master, b"\x03")
    finally:
        os.close(master)
        if time.monotonic() >= end:
            os.kill(child, signal.SIGKILL)
        recording.code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    above = ["".join(row[column].data for column in range(columns)).rstrip() for row in screen.history.top]
    recording.history = [*above, *(line.rstrip() for line in screen.display)]
    return recording
