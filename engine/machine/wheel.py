"""What the installer of a distribution wrote down: the list RECORD of the installed files, and their origin."""

from __future__ import annotations

import csv
import json
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from importlib import metadata
from pathlib import Path

from engine.machine.loadable import is_importable, is_loadable
from engine.system import regular

_EDITABLE = "__editable__"
"""How the names of files begin that some installers write for an editable installation."""
_OUTSIDE = ("../", "/", _EDITABLE)
_ABOUT = ".dist-info/"
_SHA256 = "sha256="
_LINK = re.compile(r"""['"]([A-Za-z_]\w*)['"]\s*:\s*['"]""")
"""An entry of the mapping in a finder of an editable installation, from the name of an import package to a folder."""


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
