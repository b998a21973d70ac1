"""Data files: a module or class declares the files that its code reads or copies into a package."""

from __future__ import annotations

import ast
import os
import re
from collections.abc import Iterator
from pathlib import Path

from engine import digest
from engine.errors import StepError

NAME = "data"
"""The variable that declares data files: `data = ("words.txt", "served/")`."""
MENTIONED = re.compile(rb"\b%b\s*[:=]" % NAME.encode())
"""A pattern that is found in the source code of every module that declares data, and in that of some other modules."""
_COMPILED = "__pycache__"


def _names_of(node: ast.AST, within: ast.AST) -> tuple[str, ...]:
    """Return the files and folders that a statement in a module or class declares, () for other statements.

    In a class, a declaration counts only without an annotation or with `ClassVar`: a field called `data` is an option
    of the step.
    """
    match within, node:
        case ast.Module() | ast.ClassDef(), ast.Assign(targets=[ast.Name(id=name)], value=value) if name == NAME:
            return _texts(value)
        case ast.Module(), ast.AnnAssign(target=ast.Name(id=name), value=ast.expr() as value) if name == NAME:
            return _texts(value)
        case ast.ClassDef(), ast.AnnAssign(target=ast.Name(id=name), annotation=kind, value=ast.expr() as value):
            return _texts(value) if name == NAME and "ClassVar" in ast.unparse(kind) else ()
    return ()


def declared(tree: ast.Module, module: Path) -> tuple[list[tuple[str, str]], dict[Path, os.stat_result]]:
    """Return the rows of the data that a module declares, and the `os.stat` results from before it was read.

    Names are relative to the module's folder. A declared folder stands for all files below the folder.

    Each row is a pair of the file's name and the digest of its content; the folder of the module is not in the row.
    Raises StepError if a declared file is missing, or if the value of `data` is not made of literal texts.
    """
    rows: list[tuple[str, str]] = []
    before: dict[Path, os.stat_result] = {}
    try:
        names = list(_declared(tree))
    except ValueError as error:
        what = f"the data that {module} declares is not written as literal texts"
        raise StepError(what, [str(error)], f"write `{NAME}` as a tuple of plain texts") from None
    for number, name in enumerate(names):
        place = Path(os.path.normpath(module.parent / name))
        if place.is_dir():
            before[place] = os.stat(place)
            for path in sorted(path for path in place.rglob("*") if _COMPILED not in path.parts):
                content = "missing"  # a link to nothing, which code can list
                if path.exists():
                    before[path] = os.stat(path)
                    content = "folder" if path.is_dir() else digest.of_file(path)
                rows.append((f"{number}/{path.relative_to(place).as_posix()}", content))
        elif place.is_file():
            before[place] = os.stat(place)
            rows.append((f"{number}/{place.name}", digest.of_file(place)))
        else:
            raise StepError(
                f"{module} declares the data {name!r}, and it is not there",
                [f"looked for: {place}"],
                f"`{NAME}` names files and folders relative to the module's own folder",
            )
    return rows, before


def _declared(tree: ast.Module) -> Iterator[str]:
    for within in ast.walk(tree):
        for node in within.body if isinstance(within, ast.Module | ast.ClassDef) else ():
            yield from _names_of(node, within)


def _texts(value: ast.expr) -> tuple[str, ...]:
    """Return the literal texts in a syntax tree node for a text, tuple or list; () for any other node.

    Raises ValueError for a tuple or list that mixes texts with other values.
    """
    items = value.elts if isinstance(value, ast.Tuple | ast.List) else [value]
    texts = [each.value for each in items if isinstance(each, ast.Constant) and isinstance(each.value, str)]
    if len(texts) < len(items) and (texts or any(isinstance(each, ast.Starred) for each in items)):
        raise ValueError(f"line {value.lineno}: {ast.unparse(value)}")
    return tuple(texts) if len(texts) == len(items) else ()
