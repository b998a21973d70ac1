"""Digests of the code of steps and modules, with the files that were read to compute the digests."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from engine import digest
from engine.builder.code import colours, reading
from engine.digest import Digest

if TYPE_CHECKING:
    from engine.step import Step


@dataclass(frozen=True)
class Code:
    """The digest of some code, and the files that were read to compute the digest."""

    digest: Digest
    files: tuple[Path, ...]
    before: Mapping[Path, os.stat_result]
    """The `os.stat` result of each file from before the file was read; folders have no entry."""


def of_step(step: Step) -> Code:
    """Return the digest of the code that a step with its options runs, from its `code_used` and its class name."""
    code = of_modules(step.code_used())
    return Code(digest.of_rows([(type(step).__qualname__, code.digest)]), code.files, code.before)


def of_modules(names: tuple[str, ...]) -> Code:
    """Return the code of several modules as one digest, which does not depend on the order of the modules."""
    parts = [of_module(name) for name in dict.fromkeys(names)]
    if len(parts) == 1:
        return parts[0]
    return _together(digest.of_rows([("", each) for each in sorted(part.digest for part in parts)]), parts)


@cache
def of_module(name: str) -> Code:
    """Return the code of a module and of all modules that it reaches, in its own package and in this one.

    The digest covers the code and the declared data of the modules, but no paths: moving or renaming a module does not
    change the digest. Raises StepError for declared data that is missing.
    """
    parts = [reading.read(each) for each in colours.reached(name)]
    before = {path: row for part in parts for path, row in part.before}
    return Code(Digest(colours.of(name)), _each_once(parts), before)


def forget() -> None:
    """Forget the digests of all code, so that the files are read again."""
    of_module.cache_clear()
    colours.forget()
    reading.forget()


def _together(content: Digest, parts: Iterable[Code]) -> Code:
    every = list(parts)
    before = {path: row for part in every for path, row in part.before.items()}
    return Code(content, _each_once(every), before)


def _each_once(parts: Iterable[Code | reading.Module]) -> tuple[Path, ...]:
    return tuple(dict.fromkeys(file for part in parts for file in part.files))
