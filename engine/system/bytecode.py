"""The folders `__pycache__` in which Python keeps compiled modules."""

from __future__ import annotations

import contextlib
import os
import sys

_FOLDER = "__pycache__"


def make_folders(package: str) -> bool:
    """Make the folders in which Python will keep the compiled modules of a package; return whether one is new.

    `package` is the package's folder. Python makes such a folder at the first import of a module beside it, and so
    changes the times of the module's folder: a build that reads these times would see a change while it runs. Where
    Python keeps no compiled modules there, or nobody may write, nothing is made.
    """
    if sys.dont_write_bytecode or sys.pycache_prefix is not None:
        return False
    is_new = False
    for folder, inner, files in os.walk(package):
        has_own, has_modules = _FOLDER in inner, any(file.endswith(".py") for file in files)
        inner[:] = [name for name in inner if name != _FOLDER]
        if has_modules and not has_own:
            with contextlib.suppress(OSError):
                os.mkdir(os.path.join(folder, _FOLDER))
                is_new = True
    return is_new
