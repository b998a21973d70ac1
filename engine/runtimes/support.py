"""Support: the precisions that a runtime computes in, the ways to run it on GPUs, and what no step supports yet."""

from __future__ import annotations

from typing import NamedTuple


class Kernels(NamedTuple):
    """Precisions that a runtime computes in on every device.

    An error message names the precisions after the text `fact`, for example "onnxruntime computes in fp32".
    """

    precisions: tuple[str, ...]
    fact: str
    instead: str = ""
    """The setting that a hint proposes where the devices support the recipe's precision and this runtime does not."""
    not_for: tuple[str, ...] = ()
    """The precisions for which `instead` does not help."""


class Way(NamedTuple):
    """A way to run models on a GPU, for `recipe doctor`, with everything that it needs besides a driver."""

    name: str
    distributions: tuple[str, ...]
    modules: tuple[tuple[str, str], ...] = ()
    """Pairs (distribution, module). `recipe doctor` takes a distribution as installed if Python finds the module."""
    libraries: tuple[str, ...] = ()
    """Shared libraries that the way to run models needs.

    Each library comes from a distribution that is not listed in `distributions`.
    """


class Unsupported(NamedTuple):
    """The value of a recipe's field, where recipes may have the value and no step supports it yet."""

    field: str
    """The path of a recipe's field, for example `target.runtime`."""
    what: str
    instead: str
