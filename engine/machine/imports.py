"""Where Python would import a package from, and which files lie there; no package is imported to see this."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Iterator, Sequence
from importlib.machinery import ModuleSpec

_NOT_LOADED = (
    ".pyi", ".h", ".hh", ".hpp", ".cuh", ".inl", ".c", ".cc", ".cpp", ".cu", ".pyx", ".pxd", ".f", ".f90", ".a", ".lib",
    ".cmake", ".proto", ".md", ".rst", ".html", "py.typed", "CMakeLists.txt",
)  # fmt: skip
"""How names of files end that are read by compilers, type checkers and people, but not by a running program."""
_NOT_IMPORTED = frozenset({"__pycache__", "include", "test", "tests"})
"""Folders of a package whose files do not count: compiled copies of modules, C headers, and the package's own tests."""
_IMPORTABLE = (".py", ".pyc", ".so", ".pyd")


def location(name: str) -> str | None:
    """Return the folder of the package or the file of the module `name`, as Python would import it now; else None."""
    path: Sequence[str] | None = None
    spec = None
    parts = name.split(".")
    for depth in range(1, len(parts) + 1):
        spec = _spec(".".join(parts[:depth]), path)
        if spec is None:
            return None
        path = [str(folder) for folder in spec.submodule_search_locations or ()]
    if spec is None or spec.origin is None or not spec.has_location:
        return next(iter(path or ()), None)
    return os.path.dirname(spec.origin) if spec.submodule_search_locations is not None else spec.origin


def files_of(place: str) -> tuple[list[str], list[str]]:
    """Return the loadable files of a package at `place`, as paths relative to `place`, and all folders in it.

    For a module that is a single file, or lies in an archive, the only file is the empty path: `place` itself.
    """
    if not os.path.isdir(place):
        return [""], []
    files: list[str] = []
    folders: list[str] = []
    for folder, names in _walk(place, set()):
        folders.append(folder)
        relative = os.path.relpath(folder, place)
        prefix = "" if relative == "." else f"{relative}/"
        files += [prefix + name for name in names if is_loadable(prefix + name)]
    return sorted(files), sorted(folders)


def entries(folder: str) -> tuple[list[str], list[str]]:
    """Return the names of the files in a folder, and of the folders that may hold modules; ([], []) without a folder.

    Links are followed.
    """
    try:
        with os.scandir(folder) as listing:
            inside = [(entry.name, entry.is_dir()) for entry in listing]
    except OSError:
        return [], []
    files = [name for name, is_folder in inside if not is_folder]
    return files, [name for name, is_folder in inside if is_folder and may_hold_modules(name)]


def _walk(folder: str, seen: set[tuple[int, int]]) -> Iterator[tuple[str, list[str]]]:
    """Yield each folder under `folder` once, with the names of its files, although links may lead in a circle."""
    status = os.stat(folder)
    if (status.st_dev, status.st_ino) in seen:
        return
    seen.add((status.st_dev, status.st_ino))
    files, folders = entries(folder)
    yield folder, files
    for name in folders:
        yield from _walk(os.path.join(folder, name), seen)


def _spec(name: str, path: Sequence[str] | None) -> ModuleSpec | None:
    finders: Iterable[object] = sys.meta_path
    for finder in finders:
        find = getattr(finder, "find_spec", None)
        spec: ModuleSpec | None = None if find is None else find(name, path)
        if spec is not None:
            return spec
    return None


def is_loadable(name: str) -> bool:
    """Say whether a running program may load a file of a package; `name` is the file's relative POSIX path."""
    return not name.endswith(_NOT_LOADED) and _NOT_IMPORTED.isdisjoint(name.split("/")[:-1])


def is_importable(name: str) -> bool:
    """Say whether Python can import a file of a package as a module; `name` is the file's relative POSIX path."""
    return name.endswith(_IMPORTABLE) and is_loadable(name)


def may_hold_modules(folder: str) -> bool:
    """Say whether a folder with the name `folder` may hold loadable files of a package."""
    return folder not in _NOT_IMPORTED and not folder.startswith(".")
