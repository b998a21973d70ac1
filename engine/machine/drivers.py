"""Drivers: the least version of NVIDIA's driver for each major version of CUDA, and what the driver here lacks."""

from __future__ import annotations

import re

from engine.machine import cuda, tools

SOURCE = (
    "NVIDIA, CUDA Compatibility, Minor Version Compatibility: "
    "https://docs.nvidia.com/deploy/cuda-compatibility/minor-version-compatibility.html"
)
LEAST = {11: "450", 12: "525", 13: "580"}
"""Major version of CUDA -> the first branch of NVIDIA's driver that runs programs that are built with it."""
_NAMED = re.compile(r"[-_]cu([0-9]{2})(?![0-9])")
"""The major version of CUDA in the name of a distribution: `tensorrt_cu12`."""


def major_of(distribution: str) -> int | None:
    """Return the major version of CUDA that an installed distribution was built with; None if its metadata is silent.

    A distribution says it in its name, or in the names of the distributions that it needs.
    """
    provider = tools.provider(distribution)
    if provider is None:
        return None
    names = [str(provider.metadata["Name"]), *(provider.requires or ())]
    return next((int(match[1]) for match in map(_NAMED.search, names) if match), None)


def lacking(distribution: str) -> str | None:
    """Return what the driver here lacks for an installed distribution; None if it is sufficient, or nobody knows."""
    built, here = major_of(distribution), cuda.supported()
    if built is None or here is None or here[0] >= built:
        return None
    version = f"CUDA {here[0]}.{here[1]}"
    least = LEAST.get(built)
    needs = f", which needs driver {least} or later" if least else ""
    return f"the driver supports {version}, and {distribution} is built for CUDA {built}{needs}"
