"""Stubs: the Python processes of a running Triton server, as the system lists them."""

from __future__ import annotations

import re
from pathlib import Path

_INSTANCE = re.compile(r"(?P<model>.+)_\d+_\d+")
"""The name of an instance of a model, which Triton gives to the instance's process as an argument."""
_ENDED = "Z"
"""The state of a process that has ended, and whose end its parent has not taken notice of."""


class Stubs:
    """The Python processes of one server. Triton takes notice of a process that it ends itself, and of no other."""

    def __init__(self, server: int) -> None:
        """`server` is the id of the server's process. A server in a container shows no processes here."""
        self._server = server
        self._instances: dict[int, str] = {}

    def dead(self) -> dict[str, str]:
        """Return the models with a process that has ended though Triton did not end it, each with the reason."""
        dead = {}
        for number in self._children():
            if not self._instances.get(number):
                self._instances[number] = _instance(number)
            instance = _INSTANCE.fullmatch(self._instances[number])
            if instance and _state(number) == _ENDED:
                dead[instance["model"]] = f"Stub process '{instance.string}' has ended."
        return dead

    def _children(self) -> list[int]:
        numbers: list[int] = []
        for children in Path(f"/proc/{self._server}/task").glob("*/children"):  # each thread may have started some
            try:
                numbers += map(int, children.read_text().split())
            except OSError:  # the thread has ended
                continue
        return numbers


def _instance(number: int) -> str:
    """Return the name of the instance that a process runs; empty for a process that runs none."""
    try:
        words = Path(f"/proc/{number}/cmdline").read_bytes().split(b"\0")
    except OSError:
        return ""
    names = (word.decode("utf-8", "replace") for word in words if b"/" not in word)
    return next((name for name in names if _INSTANCE.fullmatch(name)), "")


def _state(number: int) -> str:
    """Return the letter of a process's state; empty where there is no such process any more."""
    try:
        return Path(f"/proc/{number}/stat").read_text(errors="replace").rpartition(")")[2].split()[0]
    except OSError:
        return ""
