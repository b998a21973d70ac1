"""Scores: how the numbers of a classifier become scores, also where the graph has made them scores already."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Literal

from engine.kit.checkpoints import checkpoint as checkpoints
from engine.kit.checkpoints import labels
from engine.kit.onnx import final_activation, onnx_files
from engine.tasks.answer import Unfit

if TYPE_CHECKING:
    import onnx

Score = labels.Score | Literal["exp"]
_BEHIND: dict[str, Score] = {"softmax": "number", "sigmoid": "number", "log_softmax": "exp"}


def behind(model: onnx.ModelProto, output: str, *, axes: int) -> Score | None:
    """Return what makes scores of an output of a graph; None for logits. Raises Unfit for classes without scores."""
    ending = final_activation.of(model, output, axes=axes)
    if ending == "argmax":
        raise Unfit(f"its output {output} ends in ArgMax: it is a class, and nobody can tell the scores of the classes")
    return None if ending is None else _BEHIND[ending]


def of_onnx(checkpoint: Path, output: str, *, axes: int) -> Score | None:
    """Return what makes scores of an output of a checkpoint that is an ONNX file; None for logits, and for others."""
    model = _onnx(checkpoint)
    return None if model is None else behind(model, output, axes=axes)


def refuse_activated(model: onnx.ModelProto | Path, output: str, *, axes: int) -> None:
    """Raise Unfit where an output of a model, or of a checkpoint that is one, must be logits and is none."""
    graph = _onnx(model) if isinstance(model, Path) else model
    if graph is not None and behind(graph, output, axes=axes) is not None:
        raise Unfit(f"its output {output} ends in an activation, and must be logits")


def _onnx(checkpoint: Path) -> onnx.ModelProto | None:
    return onnx_files.load_graph(checkpoint) if checkpoints.kind(checkpoint) == "onnx" else None
