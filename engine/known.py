"""What is known of a machine: a value with what is behind it, and who knows which fact."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Known:
    """A value, and the files and environment variables that it was read from: while those stay, so does the value.

    A file that is not there, and would count if it were, belongs to `paths`, too. What the system itself tells (the
    CPU, the kernel, the driver's files) is not among them: every up-to-date build asks for that again.
    """

    value: str
    paths: tuple[str, ...] = ()
    variables: tuple[str, ...] = ()


Tell = Callable[[Any], Known]
"""Says what a fact is here, for the `Hardware` that a job needs or None.

Raises KeyError where this machine has no such thing.
"""


@dataclass(frozen=True)
class Fact:
    """A fact by who tells it. Records keep those that describe the machine as a whole and are cheap to ask for."""

    tell: Tell
    describes_machine: bool = False


FACTS: dict[str, Fact] = {}
"""Every fact that somebody has declared so far, by its name."""


def fact(name: str, *, describes_machine: bool = False) -> Callable[[Tell], Tell]:
    """Declare the function below as the one that knows a fact; steps name it in `facts`, keys have it as a row."""

    def declare(tell: Tell) -> Tell:
        FACTS[name] = Fact(tell, describes_machine)
        return tell

    return declare
