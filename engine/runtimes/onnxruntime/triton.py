"""How Triton's ONNX Runtime backend serves a built model."""

# Sources: README of triton-inference-server/onnxruntime_backend, "Model Config Options" and "ONNX Runtime with TensorRT
# optimization". The TensorRT accelerator has not yet been served by a Triton.

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from tempfile import TemporaryDirectory

from engine.errors import StepError
from engine.kit.onnx import onnx_files
from engine.kit.onnx.onnx_files import Input
from engine.runtimes.backends import Accelerator, Backend
from engine.runtimes.execution import Execution
from engine.runtimes.onnxruntime import session as ort
from engine.runtimes.onnxruntime import tensorrt_provider as ort_tensorrt
from engine.runtimes.onnxruntime.spec import Provider
from engine.runtimes.served import Served

_TRITONS_NAMES = {"trt_max_workspace_size": "max_workspace_size_bytes"}
"""Options that Triton's backend calls otherwise than ONNX Runtime does."""


def served(directory: Path, execution: Execution, scratch: Path) -> Served:
    """Return how an ONNX model is served. Raises StepError where Triton cannot run it as it was validated."""
    graph = onnx_files.load_graph(directory)
    inputs = onnx_files.inputs(graph)
    by_tensorrt = execution.options["provider"] == Provider.TENSORRT
    return Served(
        Backend.ONNXRUNTIME,
        inputs,
        onnx_files.outputs(graph),
        (onnx_files.MODEL, *onnx_files.data_files(graph)),
        on_gpu=execution.on_gpu,
        level=_level(directory, scratch),
        accelerator=(lambda name: _accelerator(name, inputs, execution)) if by_tensorrt else None,
    )


def _accelerator(name: str, inputs: Mapping[str, Input], execution: Execution) -> tuple[str, Mapping[str, str]]:
    """Return the TensorRT accelerator with its parameters: its engines are kept from start to start.

    The folder of the engines is on the server's own disk, for a model repository may be read-only. There is no
    `precision_mode`: any but the default makes the provider choose precisions by itself (`tensorrt_provider`).
    """
    kept = ort_tensorrt.cached(f"/tmp/{name}-tensorrt-engines", prefix=name)  # noqa: S108 - see above
    said = {**ort_tensorrt.options(inputs, execution), **kept}
    return Accelerator.TENSORRT, {_TRITONS_NAMES.get(each, each): value for each, value in sorted(said.items())}


def _level(model: Path, scratch: Path) -> str:
    """Return the optimization level that Triton must use.

    Triton cannot switch single optimizers off. Where session.json does, what it asks for must come to the same
    without that: at the level `basic` the fusions of higher levels do not run anyway. Raises StepError otherwise.
    """
    said = ort.options(model)
    level = str(said.get("graph_optimization_level", "all"))
    disabled = tuple(said.get("disabled_optimizers", ()))
    if not disabled:
        return level
    with TemporaryDirectory(dir=scratch) as folder:
        made = []
        for name, without in (("without", disabled), ("with", ())):
            ort.optimize(model, Path(folder) / name, level=level, disabled=without)
            made.append([path.read_bytes() for path in sorted((Path(folder) / name).iterdir())])
    if made[0] != made[1]:
        raise StepError(
            "Triton cannot serve this model as it was validated: it cannot switch single optimizers off",
            [f"switched off: {', '.join(disabled)}, at the level {level}"],
        )
    return level
