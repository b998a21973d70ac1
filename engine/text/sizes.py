"""Sizes in bytes: `2GiB` as people type a size, and `1.5 GB` or `2.0 GiB` as reports print it."""

from __future__ import annotations

import re

KIB, MIB, GIB, TIB = (1024**power for power in (1, 2, 3, 4))
"""The number of bytes in a KiB, a MiB, a GiB and a TiB."""
_BINARY = ["bytes", "KiB", "MiB", "GiB", "TiB"]
_FACTORS = {
    "b": 1, "kb": 10**3, "mb": 10**6, "gb": 10**9, "tb": 10**12,
    "kib": KIB, "mib": MIB, "gib": GIB, "tib": TIB,
}  # fmt: skip
_SIZE = r"(?i)([0-9]{1,18}(?:\.[0-9]{1,6})?) *([kmgt]i?)?(b)?"
_BARE = r"[-+]?[0-9][0-9_,]*(\.[0-9]*)?([eE][-+]?[0-9]+)?"
_QUANTITY = r"([0-9]{1,18}(?:\.[0-9]{1,6})?) *([a-zA-Z]?)"
_LETTERS = "KMGT"
_EXAMPLES = "sizes look like 512MiB, 2GiB or 1.5GB"
_SMALL = 256
"""A number below 256 without a unit is more likely a number of GiB than of MiB."""


def parse(text: str, *, letters: bool = False) -> int:
    """Return the number of bytes in a text: `20GB` is decimal, `512MiB` is binary, and `4096` is a number of bytes.

    With `letters`, a unit may be written without its B: `1.5g` is `1.5GB`, `2Gi` is `2GiB`. Raises ValueError.
    """
    match = re.fullmatch(_SIZE, text)
    if match is None or (match[2] and not match[3] and not letters):
        raise ValueError(f"{text!r} is no size")
    return int(float(match[1]) * _FACTORS[(match[2] or "").lower() + "b"])


def lacks_unit(text: str) -> bool:
    """Tell whether a text is a number without a unit, which may mean bytes, MiB or GiB."""
    return re.fullmatch(_BARE, text.strip()) is not None


def hint(text: str) -> str:
    """Return the hint for a size that lacks its unit or has a wrong unit, with the size in units that can be meant."""
    match = re.fullmatch(_QUANTITY, text.strip())
    if match is None:
        return _EXAMPLES
    number, letter = match[1], match[2].upper()
    if letter:
        return f"write {number}{letter}B or {number}{letter}iB" if letter in _LETTERS else _EXAMPLES
    if float(number) < _SMALL:
        return f"write {number}GiB or {number}MiB; {number}B if bytes are meant"
    return f"write {number}MiB; {number}B if bytes are meant"


def decimal(size: float) -> str:
    """Return a size on disk in decimal units: `512 bytes`, `90.9 MB`, `1.2 GB`."""
    from rich import filesize

    return filesize.decimal(int(size))


def binary(size: float) -> str:
    """Return a size in memory in binary units: `512 bytes`, `86.7 MiB`, `15.8 GiB`."""
    from rich import filesize

    factor, unit = filesize.pick_unit_and_suffix(int(size), _BINARY, KIB)
    return f"{size:.0f} {unit}" if factor == 1 else f"{size / factor:.1f} {unit}"
