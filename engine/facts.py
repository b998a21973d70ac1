"""Facts of the machine: their values with the files behind them, and the functions that read them."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Known:
    """The value of a fact, and the files and environment variables that the value was read from.

    The fact has the same value until a file in `paths` or an environment variable in `variables` changes. `paths` also
    names files that do not exist, but would change the fact's value if they existed. For a fact that the operating
    system reports (about the CPU, the kernel or the driver), `paths` leaves out the operating system's own files,
    because every no-op build asks the operating system for the value again.
    """

    value: str
    paths: tuple[str, ...] = ()
    variables: tuple[str, ...] = ()


def places_on_path(*programs: str) -> Iterator[str]:
    """Yield the paths at which the shell would look for programs, folder by folder of the variable PATH."""
    for folder in os.environ.get("PATH", "").split(os.pathsep):
        yield from (os.path.join(folder, program) for program in programs)


Tell = Callable[[Any], Known]
"""The type of a function that returns a fact of this machine.

The argument of a `Tell` function is the `Hardware` that a job needs, or None.

A `Tell` function raises KeyError if this machine lacks the hardware that the job needs.
"""


@dataclass(frozen=True)
class Fact:
    """A declared fact: the function that returns the value of the fact.

    Each record of the store holds the values of all facts for which `describes_machine` is true.
    """

    tell: Tell
    describes_machine: bool = False


FACTS: dict[str, Fact] = {}
"""All facts that were declared so far, by their names."""


def fact(name: str, *, describes_machine: bool = False) -> Callable[[Tell], Tell]:
    """Declare the decorated function as the reader of a fact.

    If the attribute `facts` of a step lists the name of a fact, the fact is a row of the step's keys.
    """

    def declare(tell: Tell) -> Tell:
        FACTS[name] = Fact(tell, describes_machine)
        return tell

    return declare
