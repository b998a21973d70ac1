"""The declaration `shapes_output`, which has no effect any more: what a build says of packages that have it."""

from __future__ import annotations

import ast
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from engine.errors import UserError
from engine.system import regular

if TYPE_CHECKING:
    from engine.builder.job import Job
    from engine.builder.lookup import Lookup

_NAME = "shapes_output"
_OWN = Path(__file__).parents[1]
"""The folder of this program."""


def notice(jobs: Iterable[Job], lookup: Lookup) -> str:
    """Return what to say of packages whose code, as jobs run it, has the declaration; "" without such a package."""
    files: dict[Path, None] = {}
    for job in jobs:
        with suppress(UserError, OSError):  # code that cannot be read fails its job, with the reason
            files |= dict.fromkeys(path for path, _ in lookup.code_read(job))
    foreign = [path for path in files if path.suffix == ".py" and not path.is_relative_to(_OWN)]
    packages = sorted({_package(path) for path in foreign if declares(regular.read(path))})
    if not packages:
        return ""
    return f"`{_NAME}` of {' and '.join(packages)} has no effect any more: all code that a step imports counts"


def declares(text: bytes) -> bool:
    """Return whether the text of a module, or a class in it, has the declaration."""
    if _NAME.encode() not in text:
        return False
    try:
        tree = ast.parse(text)
    except (SyntaxError, ValueError):  # ValueError: a null byte
        return False
    targets: list[ast.expr] = []
    for node in ast.walk(tree):
        targets += node.targets if isinstance(node, ast.Assign) else []
        targets += [node.target] if isinstance(node, ast.AnnAssign) else []
    return any(isinstance(target, ast.Name) and target.id == _NAME for target in targets)


def _package(path: Path) -> str:
    """Return the name of the package, or of the module without a package, that a file belongs to."""
    while (path.parent / "__init__.py").exists():
        path = path.parent
    return path.stem
