"""The data that code declares: what a module, or a class in it, ships or reads from beside itself."""

from __future__ import annotations

import ast
import os
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from engine import digest
from engine.errors import StepError

NAME = "data"
"""The name by which files are declared: `data = ("words.txt", "served/")`."""
MENTIONED = re.compile(rb"\b%b\s*[:=]" % NAME.encode())
"""What the source of a module has that declares data."""
_COMPILED = "__pycache__"


@dataclass(frozen=True)
class Declared:
    """The files behind a declaration, as rows of name and content in their order, and what to watch of them."""

    rows: tuple[tuple[str, str], ...] = ()
    files: tuple[Path, ...] = ()
    folders: tuple[Path, ...] = ()


def names_of(node: ast.AST, within: ast.AST) -> tuple[str, ...]:
    """Return the files and folders that a statement of a module or a class declares; most declare none.

    In a class the declaration is a plain one or a `ClassVar`: a field of this name is an option like any other.
    """
    match within, node:
        case ast.Module() | ast.ClassDef(), ast.Assign(targets=[ast.Name(id=name)], value=value) if name == NAME:
            return _texts(value)
        case ast.Module(), ast.AnnAssign(target=ast.Name(id=name), value=ast.expr() as value) if name == NAME:
            return _texts(value)
        case ast.ClassDef(), ast.AnnAssign(target=ast.Name(id=name), annotation=kind, value=ast.expr() as value):
            return _texts(value) if name == NAME and "ClassVar" in ast.unparse(kind) else ()
    return ()


def declared(tree: ast.Module, module: Path) -> Declared:
    """Return what a module declares, relative to its own folder. A folder means all files below it.

    Names and contents count, but not where the files lie. Raises StepError for what is not there, or no plain text.
    """
    rows: list[tuple[str, str]] = []
    files: list[Path] = []
    folders: list[Path] = []
    try:
        names = list(_declared(tree))
    except ValueError as error:
        what = f"{module} declares data in words that only running it could tell"
        raise StepError(what, [str(error)], f"write `{NAME}` as a tuple of plain texts") from None
    for number, name in enumerate(names):
        place = Path(os.path.normpath(module.parent / name))
        if place.is_dir():
            within = sorted(path for path in place.rglob("*") if path.is_file() and _COMPILED not in path.parts)
            rows += [(f"{number}/{path.relative_to(place).as_posix()}", digest.of_file(path)) for path in within]
            files += within
            folders += [place, *(path for path in sorted(place.rglob("*")) if path.is_dir() and path.name != _COMPILED)]
        elif place.is_file():
            rows.append((f"{number}/{place.name}", digest.of_file(place)))
            files.append(place)
        else:
            raise StepError(
                f"{module} declares the data {name!r}, and it is not there",
                [f"looked for: {place}"],
                f"`{NAME}` names files and folders relative to the module's own folder",
            )
    return Declared(tuple(rows), tuple(files), tuple(folders))


def _declared(tree: ast.Module) -> Iterator[str]:
    places: list[ast.Module | ast.ClassDef] = [tree]
    places += [node for node in ast.walk(tree) if isinstance(node, ast.ClassDef)]
    for within in places:
        for node in within.body:
            yield from names_of(node, within)


def _texts(value: ast.expr) -> tuple[str, ...]:
    """Return a text, or a tuple or list of texts; nothing for other values. Raises ValueError for a mixture."""
    items = value.elts if isinstance(value, ast.Tuple | ast.List) else [value]
    texts = [each.value for each in items if isinstance(each, ast.Constant) and isinstance(each.value, str)]
    if len(texts) < len(items) and (texts or any(isinstance(each, ast.Starred) for each in items)):
        raise ValueError(f"line {value.lineno}: {ast.unparse(value)}")
    return tuple(texts) if len(texts) == len(items) else ()
