"""Read each module once: its statements as parts, the statements that count at every import, and its data files."""

from __future__ import annotations

import ast
import os
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from engine import digest
from engine.builder.code import (
    bindings,
    data,
    declared,
    definitions,
    following,
    members,
    modules,
    sources,
    unread,
    writing,
)
from engine.builder.code.bindings import ImportTarget
from engine.builder.code.following import Origin, Target
from engine.builder.code.parts import WrittenCode
from engine.builder.code.sources import ModuleSource

_MISSING = "no such module"


@dataclass(frozen=True)
class Module:
    """What counts of a module's code, and when."""

    name: str
    source: ModuleSource | None = None
    """The module's source; None for a module that is compiled or missing."""
    content: str = ""
    """The digest of a compiled module, and of the declared data of any other module; the empty text for no data."""
    effects: tuple[int, ...] = ()
    """The statements that count at every import of the module, by number."""
    runs: frozenset[str] = frozenset()
    """The modules that Python imports before or while it imports this module."""
    files: tuple[Path, ...] = ()
    before: tuple[tuple[Path, os.stat_result], ...] = ()
    """Each file with its `os.stat` result from before the file was read."""

    def numbers(self, target: Target) -> tuple[int, ...] | None:
        """Return the statements that define a name, by number; None where the whole module counts for the name."""
        if self.source is None or not target.words or self.source.is_dynamic:
            return None
        return self.source.names.get(target.words[0])


@cache
def read(name: str) -> Module:
    """Return what counts of a module; raises StepError for a declaration that does not hold."""
    path = modules.file_of(name)
    if path is None:  # a folder without `__init__.py`, or nothing
        return Module(name, content="" if modules.exists(name) else _MISSING)
    source = sources.of(name)
    if source is None:
        before = os.stat(path)
        return Module(name, content=digest.of_file(path), files=(path,), before=((path, before),))
    declared.refuse_changes(source)
    shipped = data.declared(source.tree, path) if data.MENTIONED.search(source.text) else data.Declared()
    around = [each for each in modules.around(name) if modules.counts(each, name)]
    runs = {each for each in around if not sources.hands_on(each)}
    for node in source.imports:
        for target in bindings.targets(node, source.scope.package, runs=True):
            runs.update(following.imported(target, source.scope))
    initial = [modules.file_of(each) for each in around]
    files = dict.fromkeys((path, *shipped.files, *filter(None, initial)))
    return Module(
        name,
        source=source,
        content=digest.of_rows(shipped.rows) if shipped.rows else "",
        effects=tuple(
            number
            for number, node in enumerate(source.statements)
            if not members.is_declaration(node, source.tree) and not definitions.is_definition(node, source.scope)
        ),
        runs=frozenset(runs),
        files=(*files, *shipped.folders),
        before=((path, source.before), *((each, os.stat(each)) for each in files if each != path)),
    )


@cache
def code_of(name: str, number: int) -> WrittenCode:
    """Return a statement of a module as parts."""
    source = sources.of(name)
    if source is None:
        raise LookupError(f"{name} has no statements")
    node = source.statements[number]
    rebound = isinstance(node, ast.Import | ast.ImportFrom) and any(
        each in source.names for each in bindings.bound((node,), source.scope.package)
    )
    return writing.statement(node, source.scope, ordered=rebound)


@cache
def refers(name: str, number: int | None) -> frozenset[tuple[str, str]]:
    """Return all names in other code to which a statement refers, also in messages: module and name."""
    if number is None:
        return frozenset()
    references = code_of(name, number).references()
    return frozenset((target.module, target.words[0]) for target in references if target.words)


@cache
def classes(name: str) -> tuple[int, ...]:
    """Return the statements of a module that define classes, by number."""
    source = sources.of(name)
    if source is None or source.is_unshaping:
        return ()
    return tuple(number for number, node in enumerate(source.statements) if isinstance(node, ast.ClassDef))


@cache
def constants(name: str) -> tuple[tuple[str, int], ...]:
    """Return the constants of a module that none of its own code reads: name and number of the statement."""
    source = sources.of(name)
    if source is None or source.is_unshaping:
        return ()
    return tuple(
        (each, number)
        for each, numbers in source.names.items()
        for number in numbers
        if isinstance(source.statements[number], ast.Assign | ast.AnnAssign)
        and not members.is_declaration(source.statements[number], source.tree)
        and definitions.reads_nobody(source, each)
    )


@cache
def idle_imports(name: str) -> tuple[tuple[str, Target], ...]:
    """Return the imports of a module whose names none of its own code reads: the name, and what it stands for."""
    source = sources.of(name)
    if source is None or source.is_unshaping:
        return ()
    idle = [
        (each, following.follow(ImportTarget(target.module, target.names), source.module))
        for each, targets in source.scope.here.items()
        if each not in source.names and definitions.reads_nobody(source, each)
        for target in targets
        if target.runs and target.module != "__future__"
    ]
    return tuple((each, target) for each, target in idle if target.kind is not Origin.FREE or target.words)


def forget() -> None:
    """Forget the contents of all modules, so that the files are read again."""
    for function in (read, code_of, refers, classes, constants, idle_imports):
        function.cache_clear()
    unread.forget()
    bindings.forget()
    following.forget()
    sources.forget()
