"""Graphs: the folders of an artifact that hold an ONNX model each, and a function run on every folder."""

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
    """Return the folders of an artifact that hold a model: `.` for a single model, or `encoder` and `decoder`."""
    apart = tuple(name for name in (ENCODER, DECODER) if (artifact / name / onnx_files.MODEL).is_file())
    return apart or (WHOLE,)


def has_past(model: onnx.ModelProto) -> bool:
    """Whether a model has inputs for the attention keys and values of earlier calls."""
    return any(past.carries(value.name) for value in model.graph.input)


def generates(artifact: Path) -> bool:
    """Whether an artifact is a model that generates text: its graph, or the graph of its decoder, has a past.

    An artifact without an ONNX graph, such as a TensorRT engine, counts as a model that generates no text.
    """
    folder = artifact / folders(artifact)[-1]
    return (folder / onnx_files.MODEL).is_file() and has_past(onnx_files.load_graph(folder))


def each(work: Callable[[Path, Path], R], artifact: Path, out: Path, *, together: Callable[[Mapping[str, R]], R]) -> R:
    """Call `work` with the folder of each graph of an artifact and with the folder for the result of that graph.

    A single graph has its result in `out` itself; each of several graphs has its result in a folder of `out`. For a
    single graph the function returns the graph's report; for several graphs it returns `together(reports)`, where
    `reports` maps folders to reports.
    """
    names = folders(artifact)
    if names == (WHOLE,):
        return work(artifact, out)
    out.mkdir(parents=True, exist_ok=True)
    reports = {}
    for name in names:
        print(f"the {name}:")
        reports[name] = work(artifact / name, out / name)
    return together(reports)
