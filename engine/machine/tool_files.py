"""The files from which Python loads an installed tool, compared with the list RECORD of the tool's installer."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from engine.machine import imports
from engine.machine.loadable import is_importable
from engine.machine.wheel import Wheel, listed_by_others


@dataclass(frozen=True)
class ToolFiles:
    """The files of an installed tool that can change what the tool computes."""

    files: Mapping[str, str]
    """A mapping from each file's name to its path. A name begins with the import package, and is equal everywhere."""
    expected: Mapping[str, str]
    """A mapping from the name of each file that RECORD lists to the SHA-256 of its content, as RECORD writes it."""
    folders: tuple[str, ...]
    """The folders whose entries decide which files there are, and the files about the installation."""
    unverified: str
    """Why RECORD does not prove which code the tool has, whatever the files contain; empty if RECORD proves it."""
    moved: str = ""
    """Why Python does not load the files that RECORD lists; empty if Python loads them."""


def files_of(wheel: Wheel) -> ToolFiles:
    """Return the files of an installed distribution."""
    packages = wheel.packages()
    places = ((package, imports.location(package)) for package in packages)
    moved = {
        package: place for package, place in places if place is not None and not _is_at(place, wheel, packages[package])
    }
    files = {name: str(wheel.site / name) for name in wheel.listed if not _is_under(name, moved)}
    folders = [*map(str, wheel.about), *_folders(wheel, files)]
    files |= _extra(wheel, files, folders)
    for package, place in moved.items():
        names, inside = imports.files_of(place)
        base = package.replace(".", "/")
        files |= {base + ("/" + name if name else ""): os.path.join(place, name).rstrip("/") for name in names}
        folders += inside
    where = [f"{package} is imported from {place}" for package, place in moved.items()]
    return ToolFiles(files, wheel.listed, tuple(dict.fromkeys(folders)), wheel.unverified, next(iter(where), ""))


def _is_at(place: str, wheel: Wheel, path: str) -> bool:
    """Say whether Python imports a package from the place that RECORD lists."""
    if not path:
        return False
    listed = wheel.site / path
    if place == str(listed):
        return True
    if listed.is_file():  # a module may have several files, of which Python imports one
        return os.path.dirname(place) == str(wheel.site) and os.path.basename(place) in wheel.listed
    return os.path.realpath(place) == os.path.realpath(listed)


def _is_under(name: str, packages: Mapping[str, str]) -> bool:
    return any(name == base or name.startswith((f"{base}/", f"{base}.")) for base in _bases(packages))


def _bases(packages: Mapping[str, str]) -> Iterator[str]:
    return (package.replace(".", "/") for package in packages)


def _folders(wheel: Wheel, files: Mapping[str, str]) -> list[str]:
    """Return the folders of the files that RECORD lists, and the folders around them up to the folder `site`."""
    folders: set[Path] = set()
    for name in files:
        for parent in Path(name).parents[:-1]:
            if parent in folders:
                break
            folders.add(parent)
    return sorted(str(wheel.site / folder) for folder in folders)


def _extra(wheel: Wheel, files: Mapping[str, str], folders: list[str]) -> dict[str, str]:
    """Return the importable files in the distribution's folders that no RECORD lists; add visited folders to `folders`.

    A folder that several distributions share, such as `google/`, holds files of the others, too.
    """
    site = str(wheel.site)
    known = set(folders)
    own = {os.path.dirname(path) for path in files.values()} - {site}
    extra: dict[str, str] = {}
    for folder in sorted(own):
        names, inner = imports.entries(folder)
        paths = [os.path.join(folder, name) for name in names]
        for name in inner:
            place = os.path.join(folder, name)
            if place not in known:
                below, visited = imports.files_of(place)
                paths += [os.path.join(place, each) for each in below]
                folders += visited
        named = ((os.path.relpath(path, site), path) for path in paths)
        extra |= {name: path for name, path in named if name not in files and is_importable(name)}
    others = listed_by_others(wheel, set(extra)) if extra else set()
    return {name: path for name, path in extra.items() if name not in others}
