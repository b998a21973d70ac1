"""Libraries: the shared libraries that a Python package loads and does not bring, and what brings them."""

from __future__ import annotations

from typing import NamedTuple


class Libraries(NamedTuple):
    """Shared libraries that a Python package loads and does not bring.

    `title` is the name of the software in words, such as "TensorRT 10", and `names` are its libraries, such as
    `libnvinfer.so.10`. pip's `distribution` brings them in the versions `version`, as recipes write them: "10.x".
    """

    title: str
    names: tuple[str, ...]
    distribution: str
    version: str
