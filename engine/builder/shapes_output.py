"""The declaration `shapes_output`, which has no effect any more: what a build says of packages that have it."""

from __future__ import annotations

import re
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from engine.errors import UserError
from engine.system import regular

if TYPE_CHECKING:
    from engine.builder.job import Job
    from engine.builder.lookup import Lookup

_DECLARATION = re.compile(rb"^\s*shapes_output\s*(:[^=\n]+)?=[^=]", re.MULTILINE)
_OWN = Path(__file__).parents[1]
"""The folder of this program."""


def notice(jobs: Iterable[Job], lookup: Lookup) -> str:
    """Return what to say of packages whose code, as jobs run it, has the declaration; "" without such a package."""
    files: dict[Path, None] = {}
    for job in jobs:
        with suppress(UserError, OSError):  # code that cannot be read fails its job, with the reason
            files |= dict.fromkeys(path for path, _ in lookup.rows.code_read(job))
    foreign = [path for path in files if path.suffix == ".py" and not path.is_relative_to(_OWN)]
    packages = sorted({_package(path) for path in foreign if declares(regular.read(path))})
    if not packages:
        return ""
    return f"`shapes_output` of {' and '.join(packages)} has no effect any more: all code that a step imports counts"


def declares(text: bytes) -> bool:
    """Return whether the text of a module has a line with the declaration, in the module itself or in a class."""
    return _DECLARATION.search(text) is not None


def _package(path: Path) -> str:
    """Return the name of the package, or of the module without a package, that a file belongs to."""
    while (path.parent / "__init__.py").exists():
        path = path.parent
    return path.stem
