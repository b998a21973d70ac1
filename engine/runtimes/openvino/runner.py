"""Runners of OpenVINO's compiled models on a CPU."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from engine.kit.onnx import onnx_files
from engine.runtimes.execution import Execution
from engine.runtimes.openvino import compiled, ir, work
from engine.runtimes.openvino.blobs import Blobs
from engine.runtimes.openvino.compiled import Calls
from engine.runtimes.openvino.shapes import Shapes
from engine.runtimes.runner import RivalModel, Runner

if TYPE_CHECKING:
    import openvino


__all__ = ["rival", "runner"]


def runner(
    directory: Path, execution: Execution, *, name: str, threads: int = 0, new_tokens: int | None = None
) -> Runner:
    """Return the runner of the IR in `directory`. Raises StepError where OpenVINO cannot compile the model."""
    del execution, new_tokens  # OpenVINO has no options here, and no models that generate text
    return _of(ir.read(directory / ir.MODEL), name, threads, compile=Blobs(directory).compiled)


def rival(original: RivalModel, *, name: str, precision: str, execution: Execution, threads: int) -> Runner:
    """Return the runner of an exported model in fp32, as OpenVINO reads it from the ONNX file."""
    del precision, execution  # fp32 on the CPU: the only way that this runtime offers for rivals
    options = {**compiled.LATENCY, **compiled.FP32}
    return _of(ir.of_onnx(original.exported / onnx_files.MODEL), name, threads, options=options)


def _of(
    model: openvino.Model,
    name: str,
    threads: int,
    *,
    options: Mapping[str, str] = compiled.LATENCY,
    compile: Callable[..., openvino.CompiledModel] = compiled.compiled,  # noqa: A002 - the field's term
) -> Runner:
    shapes = Shapes(model, lambda each: Calls(each, threads=threads, options=options, compile=compile))
    return Runner(
        name,
        shapes.run,
        shapes.prepare,
        takes=shapes.takes,
        inputs=ir.described(model, model.inputs),
        work=lambda inputs: work.multiplications(model, shapes.fed(inputs)),
    )
