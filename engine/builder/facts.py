"""The facts that are rows of keys, from the modules that declare the facts."""

from __future__ import annotations

import importlib
import importlib.util
import pkgutil
from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from typing import TYPE_CHECKING

from engine import runtimes
from engine.facts import FACTS, Known
from engine.machine import local_gpus, shared_libraries, tools
from engine.runtimes import requirements

if TYPE_CHECKING:
    from engine.step import Hardware

_MACHINE = "engine.machine.facts"
_LOADED_LATE = ("engine.server.discovery",)
"""Modules that declare facts and are slow to import: they are loaded only for a fact that no other module declares."""


def of(name: str, hardware: Hardware | None = None) -> Known:
    """Return a fact. A fact `device.*` describes the GPU of this machine that `hardware` names.

    Raises KeyError for an undeclared fact, and for a fact of a GPU that this machine lacks.
    """
    _load(_homes() if name in FACTS else (*_homes(), *_LOADED_LATE), name)
    return FACTS[name].tell(hardware)


def describing() -> Mapping[str, str]:
    """Return the facts that describe this machine in records."""
    _load(_homes())
    every = sorted(FACTS.items())
    return {name: fact.tell(None).value for name, fact in every if fact.describes_machine}


def needed_by(hardware: Hardware) -> Iterator[Known]:
    """Yield the facts that say whether this machine has a required GPU, and the software that drives the GPU."""
    yield from (tools.known(each.tool) for each in hardware.each)
    yield local_gpus.known(local_gpus.names())
    if hardware.libraries is not None:
        yield from map(shared_libraries.known, hardware.libraries.names)


def can_run(hardware: Hardware) -> bool:
    """Say whether this machine has a required GPU, and suitable versions of the software that drives the GPU."""
    return requirements.lack(hardware) is None


@cache
def _homes() -> tuple[str, ...]:
    """Return the modules that declare the facts of `engine`: a module for the machine, and one for each runtime.

    A package of another project declares its facts where it declares its steps and runtimes.
    """
    rooms = (room.name for room in pkgutil.iter_modules(runtimes.__path__, "engine.runtimes.") if room.ispkg)
    facts = (f"{room}.facts" for room in rooms)
    return (_MACHINE, *(name for name in facts if importlib.util.find_spec(name) is not None))


def _load(homes: Iterable[str], name: str | None = None) -> None:
    for home in homes:
        if name is None or name not in FACTS:
            _ = importlib.import_module(home).__doc__  # reading it loads a module that a step has imported lazily
