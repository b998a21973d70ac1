"""Portable names: what a job read, without the folders of this machine, as far as possible."""

from __future__ import annotations

import os

from engine.builder.trace import places
from engine.builder.trace.places import ENGINE
from engine.builder.trace.reads import PATHS, Kind, Read


class Naming:
    """The names of reads of a job whose step lies in the Python package `root`, a folder or a file."""

    def __init__(self, root: str) -> None:
        self._root = root
        self.folder = root if root.endswith(os.sep) else root and os.path.join(os.path.dirname(root), "")
        """The folder of the step's package; for a module without a package, the folder of the module."""
        self._bases = {ENGINE: _around(ENGINE), self.folder: _around(root)}
        self._home = os.path.expanduser("~") + os.sep

    def portable(self, read: Read) -> str:
        """Return the name of a read: relative to the package of the step, to this program or to the home folder."""
        return self.path(read.name) if read.kind in (*PATHS, Kind.PROGRAM) else read.name

    def path(self, path: str) -> str:
        """Return the portable name of a path."""
        for folder, base in self._bases.items():
            if folder and f"{path}{os.sep}".startswith(folder):
                return path[len(base) :]
        return f"~{os.sep}{path[len(self._home) :]}" if path.startswith(self._home) else path

    def is_own(self, path: str) -> bool:
        """Say whether a file belongs to this program or to the package of the step.

        Data beside a module without a package belongs to it, and another module there is a package of its own.
        """
        real = map(places.without_links, (path, self.folder, self._root))
        return self._is_own(path, self.folder, self._root) or self._is_own(*real)

    @staticmethod
    def _is_own(path: str, folder: str, root: str) -> bool:
        beside = folder != "" and path.startswith(folder) and not path.endswith(".py")
        return beside or path.startswith((ENGINE, root or ENGINE))


def _around(root: str) -> str:
    """Return the folder that contains a package's folder or a module's file."""
    return os.path.join(os.path.dirname(root.removesuffix(os.sep)), "")
