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
_SIZE = re.compile(r"([0-9]{1,18}(?:\.[0-9]{1,6})?) *([kmgt]i?)?(b)?", re.IGNORECASE)


def parse(text: str, *, letters: bool = False) -> int:
    """Return the number of bytes in a text: `20GB` is decimal, `512MiB` is binary, and `4096` is a number of bytes.

    With `letters`, a unit may be written without its B: `1.5g` is `1.5GB`, `2Gi` is `2GiB`. Raises ValueError.
    """
    match = _SIZE.fullmatch(text)
    if match is None or (match[2] and not match[3] and not letters):
        raise ValueError(f"{text!r} is no size")
    return int(float(match[1]) * _FACTORS[(match[2] or "").lower() + "b"])


def decimal(size: float) -> str:
    """Return a size on disk in decimal units: `512 bytes`, `90.9 MB`, `1.2 GB`."""
    from rich import filesize

    return filesize.decimal(int(size))


def binary(size: float) -> str:
    """Return a size in memory in binary units: `512 bytes`, `86.7 MiB`, `15.8 GiB`."""
    from rich import filesize

    factor, unit = filesize.pick_unit_and_suffix(int(size), _BINARY, KIB)
    return f"{size:.0f} {unit}" if factor == 1 else f"{size / factor:.1f} {unit}"
