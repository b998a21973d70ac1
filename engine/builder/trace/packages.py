"""Packages: the installed distribution, or the standard library, that a file belongs to."""

# The metadata of a distribution is read only where the name of a package differs from that of its distribution.

from __future__ import annotations

import os
import re
import sys
from functools import cache

from engine.builder.trace.call_sites import is_standard
from engine.plugins import METADATA

PYTHON = "python"
"""The interpreter and its standard library."""
IMPORT_PATH = "import path"
"""The folders in which Python looks for modules, with the lists of entry points, which programs read for all."""
DESCRIBES = "metadata of "
"""What stands before the name of a distribution for its metadata."""
_SEPARATORS = re.compile(r"[-_.]+")
_PINNED = re.compile(rb"^Requires-Dist: *([\w.-]+) *==[^;,\n]*$", re.MULTILINE)
"""A requirement of one exact version without a condition: the version of the distribution stands for both."""
_INTERPRETER = os.path.realpath(sys.executable)
_NAME_OF_LIBRARY = f"{os.sep}libpython3."


def package_of(file: str) -> str | None:
    """Return the name of the package that a file or folder belongs to; None for one that no installer knows.

    A folder without `__init__.py`, such as `google`, may hold packages of several distributions.
    """
    if file in _absolute(tuple(sys.path)):
        return IMPORT_PATH
    for site in _sites():
        if file.startswith(site):
            first, *others = file[len(site) :].split(os.sep, 2)
            if first.endswith(METADATA):
                return IMPORT_PATH if others == ["entry_points.txt"] else f"{DESCRIBES}{_described_by(first)}"
            is_shared = others and not _is_package(site + first)
            return _owner(site, os.path.join(first, others[0]) if is_shared else first)
    return PYTHON if is_standard(file) or file == _INTERPRETER or _NAME_OF_LIBRARY in file else None


def normalized(name: str) -> str:
    """Return the name of a distribution as packaging tools compare names."""
    return _SEPARATORS.sub("-", name).lower()


def pinned_by(name: str) -> frozenset[str]:
    """Return the distributions that a distribution requires in one exact version, directly or indirectly."""
    pinned: set[str] = set()
    todo = {normalized(name)}
    while todo:
        each = todo.pop()
        folders = (_metadata_in(site).get(each) for site in _sites())
        new = _pins(next(filter(None, folders), "")) - pinned - {normalized(name)}
        pinned |= new
        todo |= new
    return frozenset(pinned)


@cache
def _pins(metadata: str) -> frozenset[str]:
    fields, _, _ = _read(metadata, "METADATA").partition(b"\n\n")  # a text for readers follows
    return frozenset(normalized(match.decode()) for match in _PINNED.findall(fields))


@cache
def _owner(site: str, package: str) -> str | None:
    """Return the distribution that installed a folder or file of a site; None if no distribution says so."""
    folders = _metadata_in(site)
    name = normalized(package.partition(".")[0])
    if name in folders:
        return name
    lines = (f"\n{package}/".encode(), f"\n{package},".encode())
    listed = ((each, b"\n" + _record(folder)) for each, folder in folders.items())
    return next((each for each, record in listed if any(line in record for line in lines)), None)


@cache
def _record(metadata: str) -> bytes:
    return _read(metadata, "RECORD")


def _read(metadata: str, name: str) -> bytes:
    try:
        with open(os.path.join(metadata, name), "rb") as file:  # opened here, where the hook knows it for no job's read
            return file.read()
    except OSError:
        return b""


def _described_by(metadata: str) -> str:
    """Return the distribution of a folder of metadata such as `numpy-2.4.6.dist-info`."""
    return normalized(os.path.splitext(metadata)[0].partition("-")[0])


def _sites() -> tuple[str, ...]:
    return _sites_in(_absolute(tuple(sys.path)))


@cache
def _sites_in(entries: tuple[str, ...]) -> tuple[str, ...]:
    """Return the folders of the import path in which distributions are installed."""
    return tuple(site for entry in entries if _metadata_in(site := os.path.join(entry, "")))


@cache
def _absolute(entries: tuple[str, ...]) -> tuple[str, ...]:
    """Return entries of the import path without `..`, as a trace names them."""
    return tuple(map(os.path.abspath, entries))


@cache
def _metadata_in(site: str) -> dict[str, str]:
    """Return the folders of metadata in a folder of the import path, by the name of the distribution."""
    try:
        names = [name for name in os.listdir(site) if name.endswith(METADATA)]
    except OSError:
        return {}
    return {_described_by(name): os.path.join(site, name) for name in names}


@cache
def _is_package(folder: str) -> bool:
    return os.path.isfile(os.path.join(folder, "__init__.py"))
