"""Installed distributions: which one a package in site-packages belongs to, found without reading all metadata."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from functools import cache

from engine.plugins import METADATA
from engine.system import regular

_SEPARATORS = re.compile(r"[-_.]+")
_PINNED = re.compile(rb"^Requires-Dist: *([\w.-]+) *==[^;,\n]*$", re.MULTILINE)
"""A requirement of one exact version without a condition: the version of the distribution stands for both."""


@dataclass(frozen=True)
class Distribution:
    """An installed distribution, by the name of its folder of metadata."""

    name: str
    version: str


def normalized(name: str) -> str:
    """Return the name of a distribution as packaging tools compare names."""
    return _SEPARATORS.sub("-", name).lower()


def described_by(metadata: str) -> Distribution:
    """Return the distribution of a folder of metadata such as `site-packages/numpy-2.4.6.dist-info`."""
    name, _, version = os.path.splitext(os.path.basename(metadata))[0].partition("-")
    return Distribution(normalized(name), version)


@cache
def owner(package: str) -> Distribution | None:
    """Return the distribution that installed a package; None if no distribution says so.

    `package` is the path of a folder or file in site-packages, at most two levels below it.
    """
    site, inside = os.path.split(package)
    while not _metadata_in(site) and os.path.dirname(site) != site:
        site, inside = os.path.dirname(site), os.path.join(os.path.basename(site), inside)
    folders = _metadata_in(site)
    same = folders.get(normalized(inside.partition(".")[0]))
    if same is not None:
        return described_by(same)
    lines = (f"\n{inside}/".encode(), f"\n{inside},".encode())
    for folder in folders.values():
        listed = _listed(folder)
        if any(line in listed for line in lines):
            return described_by(folder)
    return None


@cache
def pinned_by(name: str, site: str) -> frozenset[str]:
    """Return the distributions that a distribution requires in one exact version, directly or indirectly."""
    folder = _metadata_in(site).get(normalized(name))
    if folder is None:
        return frozenset()
    fields, _, _ = _read(os.path.join(folder, "METADATA")).partition(b"\n\n")  # a text for readers follows
    direct = {normalized(match.decode()) for match in _PINNED.findall(fields)}
    direct.discard(normalized(name))
    return frozenset(direct.union(*(pinned_by(each, site) for each in direct)))


@cache
def _metadata_in(site: str) -> dict[str, str]:
    try:
        names = [name for name in os.listdir(site) if name.endswith(METADATA)]
    except OSError:
        return {}
    return {described_by(name).name: os.path.join(site, name) for name in names}


@cache
def _listed(metadata: str) -> bytes:
    return b"\n" + _read(os.path.join(metadata, "RECORD"))


def _read(path: str) -> bytes:
    try:
        return regular.read(path)
    except OSError:
        return b""
