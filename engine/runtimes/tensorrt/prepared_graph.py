"""Prepared graph: what the compilation of an ONNX graph needs to know about it, in a file beside the graph."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from engine.step import Frozen

FILE = "prepared.json"
"""The name of the file, in the directory of the graph."""


class EngineTensor(Frozen):
    """An input or output: numpy's name of its type, and for each axis its size, or its name where the size is free."""

    dtype: str
    shape: tuple[int | str, ...]


class Extents(Frozen):
    """The shapes of an input in one profile, or the values of a shape tensor."""

    min: tuple[int, ...]
    opt: tuple[int, ...]
    max: tuple[int, ...]

    def __str__(self) -> str:
        return " / ".join("x".join(map(str, ends)) for ends in (self.min, self.opt, self.max))


class Onnx(Frozen):
    """The ONNX graph that the engine is built from: its digest and its size in bytes, with weights."""

    digest: str
    bytes: int


class PreparedGraph(Frozen):
    """A graph to compile: all that the compilation has to know about it, without reading the ONNX file."""

    model: str
    """The name of the ONNX file, in the directory of this file."""
    onnx: Onnx
    inputs: Mapping[str, EngineTensor]
    outputs: Mapping[str, EngineTensor]
    profiles: tuple[Mapping[str, Extents], ...]
    """For each profile, the shapes of the inputs that have a free axis; one empty profile where no input has one."""
    values: tuple[Mapping[str, Extents], ...] = ()
    """The values of inputs by name, for each profile; empty where the recipe states none."""
    forecast: str = ""
    """The memory that the graph needs at its largest shapes, as text."""
    sparse: tuple[int, int] | None = None
    """The number of weights with the pattern 2:4, and of all; None for a recipe without `sparse_weights`."""


def write(directory: Path, prepared: PreparedGraph) -> None:
    """Write the file beside the graph: the same graph and options give the same bytes."""
    (directory / FILE).write_text(prepared.model_dump_json(indent=1) + "\n", "utf-8")


def read(directory: Path) -> PreparedGraph:
    """Return what `write` has written into a directory."""
    return PreparedGraph.model_validate_json((directory / FILE).read_bytes())


def in_words(profile: Mapping[str, Extents]) -> str:
    """Return the min, opt and max shape of each input: `input_ids 1x1 / 1x16 / 1x128`."""
    return ", ".join(f"{name} {ends}" for name, ends in profile.items())
