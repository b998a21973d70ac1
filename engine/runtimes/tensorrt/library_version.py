"""Library version: the four numbers of the TensorRT library, where pip's version of the bindings has no build."""

from __future__ import annotations

import ctypes
import os

from engine.runtimes.versions import VersionMatch, compare, is_whole, numbers

_PARTS = ("Major", "Minor", "Patch", "Build")


def with_build(version: str) -> str:
    """Return the four numbers of the loaded library of TensorRT for a version of the bindings.

    pip's TensorRT up to 10.7 has three numbers, and a plan loads where all four are the same. The result is `version`
    itself where it has four numbers, where no library is loaded, or where the library is of another version. Source:
    `getInferLibBuildVersion` and its siblings, which `NvInferRuntime.h` declares.
    """
    if is_whole(version) or not numbers(version):
        return version
    try:
        name = f"libnvinfer.so.{numbers(version)[0]}"
        library = ctypes.CDLL(name, mode=ctypes.DEFAULT_MODE | os.RTLD_NOLOAD)  # the one that the bindings loaded
        whole = ".".join(str(getattr(library, f"getInferLib{part}Version")()) for part in _PARTS)
    except (OSError, AttributeError):
        return version
    return version if compare(version, whole) is VersionMatch.DIFFERENT else whole
