"""Parts of GPUs: MIG slices and vGPUs, as names of drivers and recipes say them."""

# Sources: NVIDIA, MIG User Guide ("Supported MIG Profiles", "MIG Device Names"); NVIDIA, vGPU types.

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import NamedTuple

_MIG = r"(?i)[\s-]+MIG[\s-]+(?:([0-9]+)c\.)?([0-9]+)g\.([0-9]+)gb((?:[+-][a-z.]+)?)$"
"""A MIG slice: `MIG 3g.20gb`, and `MIG 1c.3g.20gb` for a compute instance with 1 of the slice's 3 parts of the SMs."""
_VGPU = r"-(?:([0-9])-)?([0-9]+)([ABCQ])$"
"""A vGPU: `T4-8C` has 8 GB of a T4, and `A100-2-10C` 2 of the 7 parts of an A100 with 10 GB."""
_VGPU_BOARDS = {"A100D": "A100-80GB", "A100DX": "A100-80GB", "H100XM": "H100", "H100L": "H100 NVL"}
"""Boards whose names differ in vGPUs. Source: NVIDIA, vGPU types."""

_OF_80 = "1g.10gb 1g.20gb 2g.20gb 3g.40gb 4g.40gb 7g.80gb"
_OF_96 = "1g.12gb 1g.24gb 2g.24gb 3g.48gb 4g.48gb 7g.96gb"
_OF_B200 = "1g.23gb 1g.45gb 2g.45gb 3g.90gb 4g.90gb 7g.180gb"
SLICES: Mapping[str, tuple[str, ...]] = {
    name: tuple(slices.split())
    for name, slices in {
        "A30": "1g.6gb 2g.12gb 4g.24gb",
        "A100-40GB": "1g.5gb 1g.10gb 2g.10gb 3g.20gb 4g.20gb 7g.40gb",
        "A100-80GB": _OF_80,
        "H100": _OF_80,
        "H100 PCIe": _OF_80,
        "H100 NVL": "1g.12gb 1g.24gb 2g.24gb 3g.47gb 4g.47gb 7g.94gb",
        "H200": "1g.18gb 1g.35gb 2g.35gb 3g.71gb 4g.71gb 7g.141gb",
        "H200 NVL": "1g.18gb 1g.35gb 2g.35gb 3g.71gb 4g.71gb 7g.141gb",
        "GH200": _OF_96,
        "A800-80GB": _OF_80,
        "H800": _OF_80,
        "H800 PCIe": _OF_80,
        "B200": _OF_B200,
        "RTX PRO 6000 Blackwell": "1g.24gb 2g.48gb 4g.96gb",
    }.items()
}
"""GPU -> its MIG slices. Of a GPU that is not listed, the slices are not known: any part of the right size is accepted.

Source: NVIDIA, MIG User Guide, "Supported MIG Profiles"; the editions with media extensions (`+me`) have the same size.
"""
SOURCE = (
    "NVIDIA, MIG User Guide, Supported MIG Profiles: "
    "https://docs.nvidia.com/datacenter/tesla/mig-user-guide/supported-mig-profiles.html"
)
_SEVENTHS = (1, 2, 3, 4, 7)
"""The numbers of parts of the SMs that slices have."""


class GpuPart(NamedTuple):
    """A part of a GPU: the name of the whole, the rest of the name, and the memory in GiB.

    `slice` is the MIG slice that holds the part ("3g.20gb"), empty for a vGPU. `computes` is the number of parts of the
    SMs that the part may use, and `of` the number that its slice has.
    """

    whole: str
    suffix: str
    memory_gib: int
    slice: str = ""
    computes: int = 1
    of: int = 1


def part_of(name: str) -> GpuPart | None:
    """Return the part of a GPU that a name means: "NVIDIA A100-SXM4-40GB MIG 1c.3g.20gb", "GRID T4-8C"; else None."""
    if match := re.search(_MIG, name):
        share, of, memory = int(match[1] or match[2]), int(match[2]), int(match[3])
        compute = f"{share}c." if share != of else ""
        profile = f"{of}g.{memory}gb"
        suffix = f" MIG {compute}{profile}{match[4].lower()}"
        return GpuPart(name[: match.start()], suffix, memory, profile, share, of)
    if match := re.search(_VGPU, name):
        board = re.sub(r"^(NVIDIA|GRID)\s+", "", name[: match.start()])
        return GpuPart(_VGPU_BOARDS.get(board, board), match[0].upper(), int(match[2]))
    return None


def exists(part: GpuPart, whole: str, memory_gib: int) -> bool:
    """Tell whether the GPU `whole` with `memory_gib` can be divided into parts of this size."""
    if not 0 < part.memory_gib <= memory_gib or not 0 < part.computes <= part.of:
        return False
    if not part.slice:
        return True
    if whole in SLICES:
        return part.slice in SLICES[whole]
    return part.of in _SEVENTHS and part.memory_gib * (_SEVENTHS[-1] + 1) >= part.of * memory_gib * 0.9
