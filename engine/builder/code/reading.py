"""Read each module once: the module's code without names of modules, and the modules that the code uses."""

from __future__ import annotations

import ast
import os
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from engine import digest
from engine.builder.code import bindings, data, essence, modules
from engine.builder.code.bindings import ImportTarget, Scope
from engine.builder.code.essence import NOTHING, Led
from engine.system import regular

_MISSING = "no such module"


@dataclass(frozen=True)
class Module:
    """The digest of a module's own code, and the modules that the code uses or imports."""

    text: str
    """The digest of the module's own code and declared data, without the code of other modules."""
    leads: tuple[str, ...] = ()
    """The modules that names in the code refer to, in the order in which the names appear in the code."""
    reaches: tuple[Led, ...] = ()
    """The targets of all import statements, and the packages that Python imports before the module, in any order."""
    files: tuple[Path, ...] = ()
    before: tuple[tuple[Path, os.stat_result], ...] = ()
    """Each file with its `os.stat` result from before the file was read."""
    is_empty: bool = False


@dataclass(frozen=True)
class _Source:
    before: os.stat_result
    text: bytes
    tree: ast.Module
    scope: Scope


@cache
def read(module: str) -> Module:
    """Return the digest, imports and files of a module; a module without a file counts as empty.

    Raises StepError for declared data that is missing.
    """
    path = modules.file_of(module)
    if path is None:
        return Module(_MISSING, is_empty=True)
    if path.suffix != ".py":
        before = os.stat(path)
        return Module(digest.of_file(path), files=(path,), before=((path, before),))
    source = _source(path, module)
    shipped = data.declared(source.tree, path) if data.MENTIONED.search(source.text) else data.Declared()
    content = essence.of(source.tree, source.text, source.scope, lambda target: _follow(target, module), _hands_on)
    around = [each for each in modules.around(module) if modules.counts(each, module)]
    run_first = {(each, "") for each in around if not read(each).is_empty and not _hands_on(each)}
    initial = [modules.file_of(each) for each in around]
    files = dict.fromkeys((path, *shipped.files, *filter(None, initial)))
    return Module(
        text=digest.of_rows([("", content.text), *shipped.rows]),
        leads=tuple(content.leads),
        reaches=tuple(content.reaches | run_first),
        files=(*files, *shipped.folders),
        before=((path, source.before), *((each, os.stat(each)) for each in files if each != path)),
        is_empty=content.is_empty and not shipped.rows,
    )


def forget() -> None:
    """Forget the contents of all modules, so that the files are read again."""
    read.cache_clear()
    _source.cache_clear()
    modules.forget()


@cache
def _source(path: Path, module: str) -> _Source:
    """Return the text of a module, its syntax tree and the names that its imports bind."""
    before = os.stat(path)
    text = regular.read(path)
    tree = ast.parse(text)
    return _Source(before, text, tree, bindings.of_module(tree, module, is_package=path.name == "__init__.py"))


def _hands_on(package: str) -> bool:
    """Say whether a package of this project only re-exports names.

    The `__init__.py` of a package that only re-exports names does not count in the keys of steps that import the
    package's modules.

    The `__init__.py` of another project's package always counts, because it may import modules for side effects.
    """
    path = modules.file_of(package)
    if path is None or path.suffix != ".py" or not modules.is_ours(package):
        return False
    return all(_is_handing_on(statement) for statement in _source(path, package).tree.body)


def _is_handing_on(statement: ast.stmt) -> bool:
    match statement:
        case ast.Import() | ast.ImportFrom() | ast.Expr(value=ast.Constant()):
            return True
        case ast.Assign(targets=[ast.Name()], value=value):
            return isinstance(value, ast.Constant) or (
                isinstance(value, ast.List | ast.Tuple) and all(isinstance(each, ast.Constant) for each in value.elts)
            )
    return False


def _handed_on(module: str, name: str) -> tuple[ImportTarget, ...]:
    """Return the targets of the imports that bind `name` in a module; () if no import binds `name`."""
    path = modules.file_of(module)
    return _source(path, module).scope.here.get(name, ()) if path is not None and path.suffix == ".py" else ()


def _follow(target: ImportTarget, asker: str) -> Led:
    """Return the target of an import, following folders, packages, and modules that re-export the name."""
    module, names, seen = target.module, target.names, set[tuple[str, tuple[str, ...]]]()
    while modules.is_known(module, asker) and (module, names) not in seen:
        seen.add((module, names))
        if not names:
            break
        handed = _handed_on(module, names[0])
        if len(handed) == 1 and handed[0].runs:
            module, names = handed[0].module, (*handed[0].names, *names[1:])
        elif modules.exists(f"{module}.{names[0]}"):
            module, names = f"{module}.{names[0]}", names[1:]
        else:
            break
    words = ".".join(names)
    if modules.counts(module, asker):
        return module, words
    if modules.is_ours(module):
        return (None, f":{words}") if words else NOTHING
    return None, ".".join((module, *names))
