"""Follow the names that imports bind to the code that the names stand for, through packages and re-exports."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum
from functools import cache

from engine.builder.code import modules, sources
from engine.builder.code.bindings import ImportTarget, Scope
from engine.builder.code.sources import ModuleSource


class Origin(StrEnum):
    """Whose code a name stands for."""

    COUNTED = "counted"
    """Code that counts in keys: of the work of steps in this project, or of the package of the step."""
    FREE = "free"
    """Other code of this project, which is part of no key."""
    LIBRARY = "library"
    """Code of any other package, which counts by its name."""
    BUILTIN = "builtin"
    """A name that Python itself has."""


@dataclass(frozen=True)
class Target:
    """The code that a name stands for: a module, and a dotted name in it; no name for the module itself."""

    kind: Origin
    module: str
    words: tuple[str, ...] = ()

    @property
    def dotted(self) -> str:
        """The module and the name in it, joined by points; only the name for a builtin."""
        return ".".join((self.module, *self.words) if self.module else self.words)


@cache
def follow(target: ImportTarget, asker: str) -> Target:
    """Return the code that an import finally leads to, through folders, packages, and modules that re-export it."""
    module, names, seen = target.module, target.names, set[tuple[str, tuple[str, ...]]]()
    while modules.is_known(module, asker) and (module, names) not in seen:
        seen.add((module, names))
        if not names:
            break
        passed = _passed_on(module, names[0])
        if len(passed) == 1 and passed[0].runs:
            module, names = passed[0].module, (*passed[0].names, *names[1:])
        elif not _defines(module, names[0]) and modules.exists(f"{module}.{names[0]}"):
            module, names = f"{module}.{names[0]}", names[1:]
        else:
            break
    if modules.counts(module, asker):
        return Target(Origin.COUNTED, module, names)
    return Target(Origin.FREE if modules.is_ours(module) else Origin.LIBRARY, module, names)


def imported(target: ImportTarget, scope: Scope) -> Iterator[str]:
    """Yield the modules that Python runs for an import, as far as their code counts."""
    whole = ImportTarget(target.module)
    reached = follow(whole if target.names == ("*",) else target, scope.module)
    if reached.kind is Origin.COUNTED:
        yield reached.module
    # The module itself runs, even if it only re-exports the name from another module.
    named = follow(whole, scope.module)
    if named.kind is Origin.COUNTED and not sources.hands_on(target.module):
        yield named.module


def meaning(node: ast.expr, scope: Scope) -> Target | None:
    """Return the code that a name, or an attribute of a name, stands for; None for a variable and other expressions."""
    words: list[str] = []
    while isinstance(node, ast.Attribute):
        words.insert(0, node.attr)
        node = node.value
    if not isinstance(node, ast.Name):
        return None
    if node.id not in scope.here:
        return Target(Origin.BUILTIN, "", (node.id, *words))
    targets = scope.here[node.id]
    if len(targets) != 1 or not targets[0].runs:
        return None
    return follow(ImportTarget(targets[0].module, (*targets[0].names, *words)), scope.module)


@dataclass(frozen=True)
class Definition:
    """The only statement that defines a name at the top level of a module."""

    source: ModuleSource
    node: ast.stmt


def definition(target: Target) -> Definition | None:
    """Return the definition of a target that is a single name in a module; None where there is none."""
    return holder(target) if len(target.words) == 1 else None


def holder(target: Target) -> Definition | None:
    """Return the definition of the first word of a target; None where there is none."""
    if target.kind not in {Origin.COUNTED, Origin.FREE} or not target.words:
        return None
    source = sources.of(target.module)
    node = source.definition(target.words[0]) if source is not None else None
    return None if source is None or node is None else Definition(source, node)


def forget() -> None:
    """Forget all targets, so that they are followed again."""
    follow.cache_clear()


def _passed_on(module: str, name: str) -> tuple[ImportTarget, ...]:
    """Return the targets of the imports that bind `name` in a module; () if no import binds `name`."""
    source = sources.of(module)
    if source is None or name in source.names:
        return ()
    return source.scope.here.get(name, ())


def _defines(module: str, name: str) -> bool:
    source = sources.of(module)
    return source is not None and name in source.names
