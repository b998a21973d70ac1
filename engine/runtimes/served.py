"""Served: how a built model is served, as its runtime tells it to whoever writes a package."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from engine.runtimes.backends import Backend

if TYPE_CHECKING:
    from engine.kit.onnx.onnx_files import Input

Shapes = Mapping[str, Sequence[int]]
"""Input -> extents."""


@dataclass(frozen=True)
class Served:
    """A built model for a server.

    `inputs` and `outputs` are what it takes and gives, nothing where its graph says it; `files` the names of its files
    that a server needs.
    """

    backend: Backend | None
    """None where no backend of Triton runs it: its package is a plain folder."""
    inputs: Mapping[str, Input]
    outputs: Mapping[str, Input]
    files: tuple[str, ...]
    largest: Mapping[str, int] = field(default_factory=dict)
    """The most that its own profiles allow, by axis; nothing where it has none."""
    on_gpu: bool = False
    level: str = "all"
    """ONNX Runtime's level of graph optimization."""
    profiles: int | None = None
    """How many profiles an engine has."""
    cuda_graphs: Sequence[Shapes] | None = None
    """The usual shapes of each profile, to capture CUDA graphs for; None for no such graphs."""
    accelerator: Callable[[str], tuple[str, Mapping[str, str]]] | None = None
    """What Triton's ONNX Runtime backend hands the model to, with parameters, by the model's name in the repository."""
    why_plain: str = ""
    """Where no backend runs it: why, in words for the log."""
    needs: tuple[str, ...] = ()
    """Where no backend runs it: the packages that do, as in requirements.txt."""


def plain(directory: Path, why: str) -> Served:
    """Return how a model is handed over that only a program of one's own runs: with all of its files."""
    files = tuple(sorted(path.relative_to(directory).as_posix() for path in directory.rglob("*") if path.is_file()))
    return Served(None, {}, {}, files, why_plain=why)
