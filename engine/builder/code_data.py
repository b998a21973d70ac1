"""The data that a module reads from beside itself: what it names in its strings."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

_LONGEST = 200
"""Letters of a string that may be a path: longer ones are prose."""
_COMPILED = "__pycache__"


@dataclass(frozen=True)
class Data:
    """The files, by their paths from the module's folder, and the folders in which others would count, too."""

    files: Mapping[str, Path]
    folders: tuple[Path, ...]


def beside(tree: ast.AST, module: Path, *, depth: int) -> Data:
    """Return the data that a module's strings name.

    `depth` is how many folders of the module's package lie around it, its own included; 0 where none may be searched
    but for plain files in its own. Whole folders count inside a package alone: beside a lone module lies whatever else
    is installed. Python files in them are code, and count where they are imported.
    """
    bases = [module.parent, *list(module.parents)[1:depth]]
    named = sorted(text for text in _paths(tree) if depth or "." in text)
    found = [base / name for base in bases for name in named]
    files = [path for path in found if path.is_file()]
    folders = [path for path in found if depth and path.is_dir()]
    within = [path for folder in folders for path in sorted(folder.rglob("*")) if _is_data(path)]
    searched = {path.parent for path in within} | set(folders)
    home = bases[-1]
    watched = (*sorted(searched), *(bases if depth else ()))
    return Data({path.relative_to(home).as_posix(): path for path in (*files, *within)}, watched)


def _paths(tree: ast.AST) -> Iterator[str]:
    """Yield the strings of a tree that can be the relative path of something."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and _is_path(node.value):
            yield node.value


def _is_path(text: str) -> bool:
    if not 0 < len(text) < _LONGEST or not text.isprintable() or text.startswith("/"):
        return False
    parts = PurePosixPath(text).parts
    return bool(parts) and ".." not in parts and _COMPILED not in parts


def _is_data(path: Path) -> bool:
    return path.is_file() and path.suffix != ".py" and _COMPILED not in path.parts
