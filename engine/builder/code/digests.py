"""The code of steps and modules as digests, with the files that it was read from."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from engine import digest
from engine.builder.code import colours, reading
from engine.digest import Digest
from engine.step import Step


@dataclass(frozen=True)
class Code:
    """What a step does, as a digest, and the files that it was read from."""

    digest: Digest
    files: tuple[Path, ...]
    before: Mapping[Path, os.stat_result]
    """Each file, but no folder, as it was before it was read."""


def of_step(step: Step) -> Code:
    """Return the code behind one very job: that of `code_used`, and which class of it does the work."""
    code = of_modules(step.code_used())
    return Code(digest.of_rows([(type(step).__qualname__, code.digest)]), code.files, code.before)


def of_modules(names: tuple[str, ...]) -> Code:
    """Return the code of several modules as one, in whatever order, and of a single one as `of_module` does."""
    parts = [of_module(name) for name in dict.fromkeys(names)]
    if len(parts) == 1:
        return parts[0]
    return _together(digest.of_rows([("", each) for each in sorted(part.digest for part in parts)]), parts)


@cache
def of_module(name: str) -> Code:
    """Return the code of a module and of all that it reaches in its own package and in ours, as far as that counts.

    Counted is what modules do (`essence`) and the data that they declare, never where any of it lies: a module that
    moves, or has another name, is the same code. Raises StepError for declared data that is not there.
    """
    parts = [reading.read(each) for each in colours.reached(name)]
    before = {path: row for part in parts for path, row in part.before}
    return Code(Digest(colours.of(name)), _each_once(parts), before)


def forget() -> None:
    """Read everything anew when it is asked for again."""
    of_module.cache_clear()
    colours.forget()
    reading.forget()


def _together(content: Digest, parts: Iterable[Code]) -> Code:
    every = list(parts)
    before = {path: row for part in every for path, row in part.before.items()}
    return Code(content, _each_once(every), before)


def _each_once(parts: Iterable[Code | reading.Module]) -> tuple[Path, ...]:
    return tuple(dict.fromkeys(file for part in parts for file in part.files))
