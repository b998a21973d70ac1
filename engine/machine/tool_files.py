"""The files from which Python loads an installed tool, compared with the list RECORD of the tool's installer."""

from __future__ import annotations

import csv
import json
import os
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from importlib import metadata
from pathlib import Path

from engine.machine import imports
from engine.machine.imports import is_importable, is_loadable
from engine.system import regular

_EDITABLE = "__editable__"
"""How the names of files begin that some installers write for an editable installation."""
_OUTSIDE = ("../", "/", _EDITABLE)
_ABOUT = ".dist-info/"
_SHA256 = "sha256="
_LINK = re.compile(r"""['"]([A-Za-z_]\w*)['"]\s*:\s*['"]""")
"""An entry of the mapping in a finder of an editable installation, from the name of an import package to a folder."""


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


def _is_under(name: str, packages: Iterable[str]) -> bool:
    bases = (package.replace(".", "/") for package in packages)
    return any(name == base or name.startswith((f"{base}/", f"{base}.")) for base in bases)


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


@dataclass(frozen=True)
class Wheel:
    """An installed distribution: the folder `site` with its packages, and the folder `info` with its metadata."""

    name: str
    site: Path
    info: Path

    @cached_property
    def listed(self) -> Mapping[str, str]:
        """A mapping from each loadable file that RECORD lists to the file's SHA-256, as RECORD writes it.

        The names are paths relative to `site`. The SHA-256 is empty if RECORD has none. Files outside `site` (scripts
        of the command line) and files about the distribution itself are left out.
        """
        rows = csv.reader((self._text("RECORD") or "").splitlines())
        return {
            name: checksum.removeprefix(_SHA256) if checksum.startswith(_SHA256) else ""
            for name, checksum, *_ in (row for row in rows if len(row) > 1)
            if not name.startswith(_OUTSIDE) and _ABOUT not in name and is_loadable(name) and not name.endswith(".pth")
        }

    @cached_property
    def unverified(self) -> str:
        """Why RECORD does not prove which code the distribution has; empty if RECORD proves it."""
        url = self._text("direct_url.json")
        if url is not None:
            return "an editable installation" if _is_editable(url) else "installed from a URL or a local file"
        if f"{_ABOUT}METADATA," not in (self._text("RECORD") or ""):
            return "installed without a list of its files"
        return ""

    @property
    def about(self) -> Iterator[Path]:
        """The files and the folder that say how the distribution was installed."""
        yield self.info
        names = ("METADATA", "PKG-INFO", "RECORD", "direct_url.json", "top_level.txt")
        yield from (self.info / name for name in names if (self.info / name).is_file())
        if not self.listed:
            yield from self._links

    def packages(self) -> dict[str, str]:
        """Return the import packages and modules of the distribution, each with its path relative to `site`.

        The path is empty for a package that RECORD does not list, for example of an editable installation.
        """
        packages: dict[str, str] = {}
        for name in self.listed:
            path = self._package_of(name)
            if path is not None:
                packages.setdefault(path.partition(".")[0].replace("/", "."), path)
        return packages or {name: "" for name in self._named() if self.unverified or self._lies_here(name)}

    def _package_of(self, name: str) -> str | None:
        """Return the path of the outermost regular package of a file, or of the module; None if Python imports neither.

        Folders without `__init__.py`, such as `google/`, may belong to several distributions.
        """
        folders = name.split("/")[:-1]
        if not folders:
            return name if is_importable(name) else None
        for depth in range(1, len(folders) + 1):
            folder = "/".join(folders[:depth])
            if f"{folder}/__init__.py" in self.listed:
                return folder if all(part.isidentifier() for part in folders[:depth]) else None
        return None

    def _named(self) -> list[str]:
        """Return the names of the import packages of a distribution whose RECORD lists no package."""
        names = (self._text("top_level.txt") or "").split()
        for link in self._links:
            text = regular.read_text(link, errors="replace")
            names += _LINK.findall(text) if link.suffix == ".py" else _packages_on(text.splitlines())
        own = re.sub(r"[-.]+", "_", self.name)
        return list(dict.fromkeys(names)) or list(dict.fromkeys((own, own.lower())))

    def _lies_here(self, package: str) -> bool:
        return (self.site / package).is_dir() or (self.site / f"{package}.py").is_file()

    @property
    def _links(self) -> list[Path]:
        """The files beside the packages that lead to the code of an editable installation."""
        rows = csv.reader((self._text("RECORD") or "").splitlines())
        names = [row[0] for row in rows if row and "/" not in row[0] and row[0].endswith((".pth", ".py"))]
        return [self.site / name for name in names if (self.site / name).is_file()]

    def _text(self, name: str) -> str | None:
        try:
            return regular.read_text(self.info / name, errors="surrogateescape")
        except OSError:
            return None


def wheel_of(distribution: metadata.Distribution) -> Wheel | None:
    """Return the installed files of a distribution; None if its metadata lies in no folder, for example in a zip."""
    info = getattr(distribution, "_path", None)
    if not isinstance(info, Path) or not info.is_dir():
        return None
    return Wheel(str(distribution.metadata["Name"]), info.parent, info)


def listed_by_others(wheel: Wheel, names: set[str]) -> set[str]:
    """Return those of the files `names` that the RECORD of another distribution in the same folder lists."""
    listed: set[str] = set()
    for record in wheel.site.glob("*.dist-info/RECORD"):
        if names - listed and record.parent != wheel.info:
            lines = regular.read_text(record, errors="surrogateescape")
            listed |= {name for name in names - listed if f"\n{name}," in f"\n{lines}"}
    return listed


def _packages_on(import_path: Iterable[str]) -> Iterator[str]:
    """Yield the names of the regular packages in folders of an import path."""
    for folder in import_path:
        yield from sorted(init.parent.name for init in Path(folder).glob("*/__init__.py"))


def _is_editable(direct_url: str) -> bool:
    try:
        return bool(json.loads(direct_url)["dir_info"]["editable"])
    except (ValueError, KeyError, TypeError):
        return False
