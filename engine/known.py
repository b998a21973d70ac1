"""Facts of the machine: their values with the files behind them, and the functions that read them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Known:
    """A value, and the files and environment variables that the value was read from.

    The value stays the same while those files and variables stay the same. `paths` also names missing files that would
    change the value if they existed. Answers of the system itself (the CPU, the kernel, the driver's files) are not in
    `paths`, because every up-to-date build asks the system again.
    """

    value: str
    paths: tuple[str, ...] = ()
    variables: tuple[str, ...] = ()


Tell = Callable[[Any], Known]
"""A function that returns a fact of this machine. The argument is the `Hardware` that a job needs, or None.

Raises KeyError where the machine has no such hardware.
"""


@dataclass(frozen=True)
class Fact:
    """The function that reads a fact. Records keep the facts that describe the whole machine and are quick to read."""

    tell: Tell
    describes_machine: bool = False


FACTS: dict[str, Fact] = {}
"""All facts that were declared so far, by their names."""


def fact(name: str, *, describes_machine: bool = False) -> Callable[[Tell], Tell]:
    """Declare the decorated function as the reader of a fact.

    A step that names the fact in `facts` has the fact as a row of its keys.
    """

    def declare(tell: Tell) -> Tell:
        FACTS[name] = Fact(tell, describes_machine)
        return tell

    return declare
