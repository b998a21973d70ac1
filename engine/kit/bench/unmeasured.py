"""Unmeasured: a rival that could not run on this machine, or a CUDA graph that failed, in a bench report."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, kw_only=True)
class Unmeasured:
    """A rival that could not run on this machine, or the built model in a CUDA graph, and the reason."""

    runtime: str
    reason: str
    shape: Mapping[str, int | str] = field(default_factory=dict)
    """The shape at which the rival failed; empty for a rival that could not be loaded."""

    def __str__(self) -> str:
        return f"{self.runtime} was not measured: {self.reason}"
