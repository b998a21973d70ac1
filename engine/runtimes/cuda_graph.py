"""CUDA graph: a call of a model that is replayed with one launch, and what capturing it took."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from engine.text import sizes

if TYPE_CHECKING:
    import numpy as np


@dataclass(frozen=True, kw_only=True)
class CapturedGraph:
    """What capturing a CUDA graph took, as measured."""

    capture_s: float
    """The seconds of the first call: the runs before the capture, the capture itself, and the first replay."""
    memory_bytes: int | None = None
    """By how many bytes the GPU's free memory fell, for buffers, working memory and graph; None where not known."""

    def __str__(self) -> str:
        memory = "memory not known" if self.memory_bytes is None else sizes.binary(self.memory_bytes)
        return f"captured in {self.capture_s:.2f} s, {memory}"


class BoundCall(NamedTuple):
    """A call of a model whose inputs and outputs stay in the device's memory, at the same addresses."""

    run: Callable[[], object]
    """Computes the outputs of the inputs that are in the device's memory, and waits for them."""
    answers: Callable[[Mapping[str, np.ndarray]], dict[str, np.ndarray]]
    """Copies inputs of the same shapes into the device's memory, runs the call, and returns every output by name."""
    graph: CapturedGraph | None = None
    """The CUDA graph that the call replays; None for a call without one."""
