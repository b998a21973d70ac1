"""The way to a path: every folder and symbolic link through which the operating system reaches a path."""

# An up-to-date build imports this module, so the module imports little.

from __future__ import annotations

import os

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    Mark = str | tuple[int, ...] | None
    """A link's target, a folder's device and inode, an empty tuple for any other file, or None where nothing is."""

_FILE_TYPE, _FOLDER, _LINK = 0o170000, 0o040000, 0o120000
"""The constants S_IFMT, S_IFDIR and S_IFLNK of the module `stat`, which would be slow to import."""
_MOST_LINKS = 40
"""The largest number of links that Linux follows on the way to one path."""


def way_to(path: str) -> dict[str, Mark]:
    """Return every folder and link on the way to a path, with its mark, and the path's own mark.

    The links inside a link's target are on the way, too. A path leads to the same file as long as all marks stay the
    same. A way that leads nowhere ends with the name at which nothing is.
    """
    way: dict[str, Mark] = {}
    here, links = "/", 0
    names = os.path.join(os.getcwd(), path).split("/")[::-1]
    while names and links <= _MOST_LINKS:
        name = names.pop()
        if name in ("", "."):
            continue
        if name == "..":
            here = os.path.dirname(here)  # no link is in `here`
            continue
        entry = os.path.join(here, name)
        mark = way[entry] = mark_of(entry)
        if mark is None:
            break
        if isinstance(mark, str):
            links += 1
            here = "/" if mark.startswith("/") else here
            names += mark.split("/")[::-1]
        else:
            here = entry
    return way


def mark_of(entry: str) -> Mark:
    """Return what is at a place now: a link's target, a folder's device and inode, an empty tuple, or None."""
    try:
        status = os.lstat(entry)
        kind = status.st_mode & _FILE_TYPE
        if kind == _LINK:
            return os.readlink(entry)
    except (OSError, ValueError):
        return None
    return (status.st_dev, status.st_ino) if kind == _FOLDER else ()


def holds(way: Mapping[str, Mark]) -> bool:
    """Say whether every place on a way still has its mark."""
    return all(mark_of(entry) == mark for entry, mark in way.items())
