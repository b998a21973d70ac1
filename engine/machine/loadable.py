"""Which files of an installed distribution can change what the distribution computes."""

from __future__ import annotations

_NOT_LOADED = (
    ".pyi", ".h", ".hh", ".hpp", ".cuh", ".inl", ".c", ".cc", ".cpp", ".cu", ".pyx", ".pxd", ".f", ".f90", ".a", ".lib",
    ".cmake", ".proto", ".md", ".rst", ".html", "py.typed", "CMakeLists.txt",
)  # fmt: skip
"""How names of files end that are read by compilers, type checkers and people, but not by a running program."""
_NOT_IMPORTED = frozenset({"__pycache__", "include", "test", "tests"})
"""Folders of a package whose files do not count: compiled copies of modules, C headers, and the package's own tests."""
_IMPORTABLE = (".py", ".pyc", ".so", ".pyd")


def is_loadable(name: str) -> bool:
    """Say whether a running program may load a file of a package; `name` is the file's relative POSIX path."""
    return not name.endswith(_NOT_LOADED) and _NOT_IMPORTED.isdisjoint(name.split("/")[:-1])


def is_importable(name: str) -> bool:
    """Say whether Python can import a file of a package as a module; `name` is the file's relative POSIX path."""
    return name.endswith(_IMPORTABLE) and is_loadable(name)


def may_hold_modules(folder: str) -> bool:
    """Say whether a folder with the name `folder` may hold loadable files of a package."""
    return folder not in _NOT_IMPORTED and not folder.startswith(".")
