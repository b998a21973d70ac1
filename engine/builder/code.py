"""A step's source code -> Digest, so that a fix rebuilds what it touches and a comment rebuilds nothing."""

from __future__ import annotations

import ast
import importlib.util
import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from engine import digest
from engine.builder import code_data
from engine.digest import Digest

_COUNTED = (
    *("engine.steps", "engine.kit", "engine.runtimes", "engine.server", "engine.client", "engine.tasks"),
    *("engine.store.copying", "engine.machine.cpu", "engine.machine.gpu_state"),
)
"""Of our own package only these hold what a step does; all else carries it."""


@dataclass(frozen=True)
class Code:
    """What a step does, as a digest, and the files that it was read from."""

    digest: Digest
    files: tuple[Path, ...]
    before: Mapping[Path, os.stat_result]
    """Each file, but no folder, as it was before it was read."""


@cache
def of_module(name: str) -> Code:
    """Return the code of a module and of all that it reaches in its own package, compiled modules included.

    Counted are the syntax trees without docstrings, comments and layout, and the data beside a module that it names in
    a string: files, and in a package of another also folders. Of `engine` itself only `_COUNTED` count.
    """
    rows: list[tuple[str, str]] = []
    files: list[Path] = []
    before: dict[Path, os.stat_result] = {}
    seen: set[str] = set()
    todo = [name]
    while todo:
        module = todo.pop()
        if module in seen or not _counts(module, name):
            continue
        seen.add(module)
        read = _read(module)
        rows += read.rows
        files += read.files
        before.update(read.before)
        # Python runs a package before the modules in it.
        todo += [module.rpartition(".")[0], *read.imports]
    return Code(digest.of_rows(sorted(rows)), tuple(dict.fromkeys(files)), before)


def of_modules(names: tuple[str, ...]) -> Code:
    """Return the code of several modules as one, and of a single one as `of_module` does."""
    parts = [of_module(name) for name in dict.fromkeys(names)]
    if len(parts) == 1:
        return parts[0]
    files = dict.fromkeys(file for part in parts for file in part.files)
    before = {path: row for part in parts for path, row in part.before.items()}
    return Code(digest.of_rows([("", part.digest) for part in parts]), tuple(files), before)


def forget() -> None:
    """Read everything anew when it is asked for again."""
    of_module.cache_clear()
    _read.cache_clear()


@dataclass(frozen=True)
class _Module:
    """What one module adds to the code of whatever reaches it."""

    rows: tuple[tuple[str, str], ...] = ()
    files: tuple[Path, ...] = ()
    before: tuple[tuple[Path, os.stat_result], ...] = ()
    imports: tuple[str, ...] = ()


@cache
def _read(module: str) -> _Module:
    path = _file_of(module)
    if path is None:
        return _Module()
    before = [(path, os.stat(path))]
    if path.suffix != ".py":
        return _Module(((module, digest.of_file(path)),), (path,), tuple(before))
    tree = ast.parse(path.read_bytes())
    is_package = path.name == "__init__.py"
    data = code_data.beside(tree, path, depth=0 if _is_ours(module) else module.count(".") + is_package)
    before += ((file, os.stat(file)) for file in data.files.values())
    contents = ((f"{module}/{name}", digest.of_file(file)) for name, file in data.files.items())
    return _Module(
        rows=((module, "".join(_essence(tree))), *contents),
        files=(path, *data.files.values(), *data.folders),
        before=tuple(before),
        imports=tuple(_imports(tree, module, is_package=is_package)),
    )


def _is_ours(module: str) -> bool:
    return module.split(".", 1)[0] == "engine"


def _counts(module: str, start: str) -> bool:
    if module == start:
        return True
    if _is_ours(module):
        return any(module == each or module.startswith(f"{each}.") for each in _COUNTED)
    return module.split(".", 1)[0] == start.split(".", 1)[0]


def _file_of(module: str) -> Path | None:
    try:
        spec = importlib.util.find_spec(module)
    except (ImportError, ValueError):
        return None
    return Path(spec.origin) if spec is not None and spec.has_location and spec.origin is not None else None


def _imports(tree: ast.AST, module: str, *, is_package: bool) -> Iterator[str]:
    """Yield every module that the tree may import when it runs; names that are no modules fall out later."""
    package = module if is_package else module.rpartition(".")[0]
    for node in _run(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = node.module or ""
            if node.level:
                parent = package.rsplit(".", node.level - 1)[0] if node.level > 1 else package
                base = f"{parent}.{base}".rstrip(".")
            yield base
            yield from (f"{base}.{alias.name}" for alias in node.names)


def _run(tree: ast.AST) -> Iterator[ast.AST]:
    """Yield the nodes of a tree but those below `if TYPE_CHECKING:`, which only a type checker reads."""
    todo = [tree]
    while todo:
        node = todo.pop()
        yield node
        skipped = node.body if isinstance(node, ast.If) and _is_type_checking(node.test) else []
        todo += [child for child in ast.iter_child_nodes(node) if child not in skipped]


def _is_type_checking(test: ast.AST) -> bool:
    name = test.attr if isinstance(test, ast.Attribute) else test.id if isinstance(test, ast.Name) else ""
    return name == "TYPE_CHECKING"


def _essence(node: ast.AST) -> Iterator[str]:
    """Yield a tree's types and values, leaving out docstrings, positions and empty fields.

    Empty fields are left out because Python versions differ in which of them they have.
    """
    yield type(node).__name__ + "("
    for name, value in ast.iter_fields(node):
        if value is None or value == [] or name in {"type_comment", "kind"}:
            continue
        yield name + "="
        if isinstance(value, list):
            for item in value:
                if isinstance(item, ast.AST):
                    yield from () if _is_docstring(item) else _essence(item)
                else:
                    yield repr(item)
        elif isinstance(value, ast.AST):
            yield from _essence(value)
        else:
            yield repr(value)
    yield ")"


def _is_docstring(item: ast.AST) -> bool:
    """Say whether this is a text that stands alone: of a module, class, function or field. It does nothing."""
    return isinstance(item, ast.Expr) and isinstance(item.value, ast.Constant) and isinstance(item.value.value, str)
