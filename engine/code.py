"""A step's source code -> Digest, so that a fix rebuilds what it touches and a comment rebuilds nothing."""

from __future__ import annotations

import ast
import importlib.util
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from engine import digest
from engine.digest import Digest

_COUNTED = ("engine.steps", "engine.kit")
"""Of our own package only these hold what a step does; the floors below them only carry it."""


@dataclass(frozen=True)
class Code:
    """What a step does, as a digest, and the files that it was read from."""

    digest: Digest
    files: tuple[Path, ...]


@cache
def of_module(name: str) -> Code:
    """Return the code of a module and of all that it reaches in its own package.

    Counted are the syntax trees without docstrings, comments and layout, and the data files beside a module
    that it names in a string. Of `engine` itself only `steps` and `kit` count.
    """
    rows: list[tuple[str, str]] = []
    files: list[Path] = []
    seen: set[str] = set()
    todo = [name]
    while todo:
        module = todo.pop()
        if module in seen or not _counts(module, name):
            continue
        seen.add(module)
        path = _file_of(module)
        if path is None:
            continue
        tree = ast.parse(path.read_bytes())
        data = _data_files(tree, path)
        rows.append((module, "".join(_essence(tree))))
        rows += [(f"{module}/{file.name}", digest.of_file(file)) for file in data]
        files += [path, *data]
        todo += _imports(tree, module, is_package=path.name == "__init__.py")
    return Code(digest.of_rows(sorted(rows)), tuple(files))


def _counts(module: str, start: str) -> bool:
    if module == start:
        return True
    if module.split(".", 1)[0] == "engine":
        return module.startswith(_COUNTED)
    return module.split(".", 1)[0] == start.split(".", 1)[0]


def _file_of(module: str) -> Path | None:
    try:
        spec = importlib.util.find_spec(module)
    except (ImportError, ValueError):
        return None
    if spec is None or spec.origin is None or not spec.origin.endswith(".py"):
        return None
    return Path(spec.origin)


def _imports(tree: ast.AST, module: str, *, is_package: bool) -> Iterator[str]:
    """Yield every module that the tree may import; names that are no modules fall out later."""
    package = module if is_package else module.rpartition(".")[0]
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = node.module or ""
            if node.level:
                parent = package.rsplit(".", node.level - 1)[0] if node.level > 1 else package
                base = f"{parent}.{base}".rstrip(".")
            yield base
            yield from (f"{base}.{alias.name}" for alias in node.names)


def _data_files(tree: ast.AST, path: Path) -> list[Path]:
    """Return the files beside a module that it names in a string constant."""
    names = {
        node.value
        for node in ast.walk(tree)
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and 0 < len(node.value) < 100  # noqa: PLR2004 - no file name is longer
    }
    plain = (name for name in sorted(names) if "/" not in name and "\0" not in name and "." in name.strip("."))
    return [path.parent / name for name in plain if (path.parent / name).is_file()]


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
            body = value[1:] if name == "body" and _is_docstring(node, value[0]) else value
            for item in body:
                yield from _essence(item) if isinstance(item, ast.AST) else (repr(item),)
        elif isinstance(value, ast.AST):
            yield from _essence(value)
        else:
            yield repr(value)
    yield ")"


def _is_docstring(owner: ast.AST, first: ast.AST) -> bool:
    documented = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
    return (
        isinstance(owner, documented)
        and isinstance(first, ast.Expr)
        and isinstance(first.value, ast.Constant)
        and isinstance(first.value.value, str)
    )
