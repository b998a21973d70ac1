"""Layers: the tensors inside a built model, compared with the same tensors of the original graph, by Polygraphy."""

# Tensors are the same where they have the same name: the passes of `quantize` keep the names of what they convert, or
# append the half precision.
# Each tensor is an output while it is compared, so a compiler fuses less than in the model that is delivered.

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from engine.errors import StepError, UsageError
from engine.kit.onnx import foreign_functions, onnx_files
from engine.kit.onnx.onnx_files import MODEL
from engine.runtimes.onnxruntime import layers as on_cpu
from engine.text import distribution, reasons, sizes

if TYPE_CHECKING:
    import numpy as np
    import onnx

    Tensors = Mapping[str, np.ndarray]
    Runner = Callable[[Path, Tensors], Any]
    """Makes a runner of Polygraphy for an ONNX file and inputs: all tensors of the graph are outputs."""

_LARGEST = 1_900_000_000
"""The largest size in bytes of a model and its weights. Polygraphy hands models on as protobuf messages of 2 GiB."""
_NO_DOCSTRINGS = 2
"""Python's level of optimization that drops docstrings."""
_DIGITS = 9
"""The digits of a lost cosine: less is rounding in float64."""
_ON_CPU = "ONNX Runtime has few kernels for bf16 and fp16 on a CPU: run the same command on the machine with the GPU"
_ENDS = ("", "_fp16", "_bf16")
"""What the name of a tensor in the built model may have behind its name in the original."""


@dataclass(frozen=True)
class ComparedLayer:
    """A tensor of the graph, and how far the built model is from the original there, in the worst of all cases.

    `operator` is the operator that computes the tensor in the original graph. `dtype` is the type in the built model.
    `max_abs` is the largest absolute error. `lost` is the cosine that this operator loses: the largest cosine of what
    it reads, less its own.
    """

    tensor: str
    operator: str
    dtype: str
    cosine: float
    max_abs: float
    lost: float


def compare(
    original: Path, built: Path, cases: Sequence[Tensors], runner: Runner = on_cpu.runner
) -> list[ComparedLayer]:
    """Return the layers of two models in the order of the original graph.

    `original` and `built` are folders with an ONNX model. The original runs in ONNX Runtime on the CPU, without
    optimizations; `runner` runs the other. Raises UsageError where Polygraphy is missing, or a model is too large.
    """
    foreign_functions.speak_of_errors_alone()
    graphs = [_graph(folder) for folder in (original, built)]
    worst: dict[str, tuple[float, float, str]] = {}
    for inputs in cases:
        feeds = [
            {name: inputs[name].astype(spec.dtype, copy=False) for name, spec in onnx_files.inputs(graph).items()}
            for graph in graphs
        ]
        expected = _tensors(on_cpu.runner(original / MODEL, feeds[0]), feeds[0])
        actual = _tensors(runner(built / MODEL, feeds[1]), feeds[1])
        for name, array in expected.items():
            same = next((actual[each] for end in _ENDS if (each := f"{name}{end}") in actual), None)
            measured = None if same is None else _distance(array, same)
            if same is not None and measured is not None:
                cosine, error = measured
                before = worst.get(name, (1.0, 0.0, ""))
                worst[name] = (min(cosine, before[0]), max(error, before[1]), str(same.dtype))
    return _layers(graphs[0], worst)


def _layers(graph: onnx.ModelProto, worst: Mapping[str, tuple[float, float, str]]) -> list[ComparedLayer]:
    reached: dict[str, float] = {}
    layers: list[ComparedLayer] = []
    for node in graph.graph.node:
        read = min((reached.get(name, 1.0) for name in node.input), default=1.0)
        for name in node.output:
            reached[name] = read
            if name in worst:
                cosine, error, dtype = worst[name]
                lost = max(0.0, round(read - cosine, _DIGITS))
                layers.append(ComparedLayer(name, node.op_type, dtype, cosine, error, lost))
                reached[name] = cosine
    return layers


def _distance(original: np.ndarray, built: np.ndarray) -> tuple[float, float] | None:
    """Return the cosine and the largest absolute error of two tensors of numbers; None for any other pair."""
    import numpy as np

    if not all(np.issubdtype(array.dtype, np.floating) for array in (original, built)) or original.shape != built.shape:
        return None
    one, other = (array.astype(np.float64).ravel() for array in (original, built))
    if not one.size or not np.isfinite(one).all():
        return None  # a mask of -inf is no measurement
    if not np.isfinite(other).all():
        return 0.0, float("inf")
    norms = float(np.linalg.norm(one) * np.linalg.norm(other))
    cosine = float(one @ other) / norms if norms else float(np.array_equal(one, other))
    return cosine, float(np.abs(one - other).max())


def _tensors(runner: Any, feed: Tensors) -> Tensors:
    """Run a model and return all tensors as numbers of numpy, which bf16 is not: Polygraphy then gives torch's."""
    import numpy as np

    try:
        with runner as active:
            answers = active.infer(dict(feed))
            return {
                name: np.array(array if isinstance(array, np.ndarray) else array.float().cpu())
                for name, array in answers.items()
            }
    except Exception as error:  # ONNX Runtime and TensorRT raise classes of their own
        raise StepError(
            "Polygraphy cannot run the model with all of its tensors as outputs", reasons.facts(error), _ON_CPU
        ) from error


def _graph(folder: Path) -> onnx.ModelProto:
    """Return the graph of a folder, without its weights."""
    if not (folder / MODEL).is_file():
        raise UsageError("the model has several graphs: layers are compared in a model of one graph")
    graph = onnx_files.load_graph(folder)
    size = onnx_files.size(folder, graph)
    if size > _LARGEST:
        raise UsageError(f"the model is too large for Polygraphy: {sizes.binary(size)}", ["it handles up to 1.8 GiB"])
    return graph


def refuse_missing() -> None:
    """Raise UsageError where Polygraphy is not installed, or cannot be imported because docstrings are dropped."""
    from importlib.util import find_spec

    if find_spec("polygraphy") is None:
        raise UsageError("Polygraphy is not installed", hint=distribution.install("polygraphy"))
    if sys.flags.optimize >= _NO_DOCSTRINGS:
        raise UsageError("Polygraphy reads its own docstrings, which `python -OO` drops", hint="unset PYTHONOPTIMIZE")
