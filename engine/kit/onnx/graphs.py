"""Graphs: the folders of an artifact that hold one ONNX model each, and a step's work on all of them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from engine.kit.onnx import onnx_files, past

if TYPE_CHECKING:
    import onnx

R = TypeVar("R")

WHOLE, ENCODER, DECODER = ".", "encoder", "decoder"


def folders(artifact: Path) -> tuple[str, ...]:
    """Return the folders that hold a model: the artifact itself, or those of an encoder and a decoder."""
    apart = tuple(name for name in (ENCODER, DECODER) if (artifact / name / onnx_files.MODEL).is_file())
    return apart or (WHOLE,)


def has_past(model: onnx.ModelProto) -> bool:
    """Whether the graph takes the keys and values of earlier calls."""
    return any(value.name.startswith(f"{past.PAST}.") for value in model.graph.input)


def generates(artifact: Path) -> bool:
    """Whether an artifact is a model that generates text: its graph, or its decoder's, has a past.

    False for an artifact without an ONNX graph, such as a TensorRT engine.
    """
    folder = artifact / folders(artifact)[-1]
    return (folder / onnx_files.MODEL).is_file() and has_past(onnx_files.load_graph(folder))


def each(work: Callable[[Path, Path], R], artifact: Path, out: Path, *, together: Callable[[Mapping[str, R]], R]) -> R:
    """Do a step's work on every graph, from a folder into the same folder of `out`.

    Returns the report of the only graph, or of several what `together` makes of their reports by folder.
    """
    found = folders(artifact)
    if found == (WHOLE,):
        return work(artifact, out)
    out.mkdir(parents=True, exist_ok=True)
    reports = {}
    for name in found:
        print(f"the {name}:")
        reports[name] = work(artifact / name, out / name)
    return together(reports)
