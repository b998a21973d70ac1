"""Compiled: models that OpenVINO compiled for the CPU of this machine, and calls of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from engine.errors import StepError
from engine.runtimes.runner import refuse_missing
from engine.text import reasons

if TYPE_CHECKING:
    import numpy as np
    import openvino

    Tensors = Mapping[str, np.ndarray]

LATENCY = {"NUM_STREAMS": "1", "PERFORMANCE_HINT": "LATENCY"}
"""The options for one call at a time.

No option sets the precision of floating-point operators, because Triton's OpenVINO backend passes none for fp32. By
default OpenVINO computes such operators in bf16 on CPUs that have instructions for bf16.
"""
FP32 = {"INFERENCE_PRECISION_HINT": "f32"}
"""The option with which floating-point operators are computed in fp32 on every CPU."""


def compiled(
    model: openvino.Model, *, threads: int = 0, options: Mapping[str, str] = LATENCY
) -> openvino.CompiledModel:
    """Compile a model for the CPU of this machine; with 0 threads, OpenVINO chooses their number.

    Raises StepError where OpenVINO cannot compile the model.
    """
    import openvino

    own = {"INFERENCE_NUM_THREADS": str(threads)} if threads else {}
    try:
        return openvino.Core().compile_model(model, "CPU", {**options, **own})
    except RuntimeError as error:
        raise StepError("OpenVINO cannot compile the model for this CPU", reasons.facts(error)) from error


def run(request: openvino.InferRequest, inputs: Tensors) -> dict[str, np.ndarray]:
    """Return the outputs of one call by name. Raises StepError where OpenVINO cannot run the model on `inputs`."""
    model = request.get_compiled_model()
    fed = feed(model, inputs)
    try:
        results = request.infer(fed)
    except RuntimeError as error:
        raise _unfit(fed, reasons.facts(error)) from error
    return {output.any_name: results[output].copy() for output in model.outputs}


def feed(model: openvino.CompiledModel, inputs: Tensors) -> dict[str, np.ndarray]:
    """Return the model's inputs among `inputs`, in the model's types.

    Raises StepError where an input is missing, and for an input of a wrong shape, which OpenVINO itself does not always
    refuse.
    """
    import openvino

    refuse_missing([value.any_name for value in model.inputs], inputs)
    fed = {
        value.any_name: inputs[value.any_name].astype(value.element_type.to_dtype(), copy=False)
        for value in model.inputs
    }
    shapes = {value.any_name: value.get_partial_shape() for value in model.inputs}
    wrong = [name for name, shape in shapes.items() if not shape.compatible(openvino.PartialShape(fed[name].shape))]
    if wrong:
        raise _unfit(fed, [f"{name} has the shape {shapes[name]}" for name in wrong])
    return fed


def _unfit(fed: Tensors, facts: Sequence[str]) -> StepError:
    """Return the error for inputs on which a model cannot run."""
    shapes = [f"{name}: {array.dtype}{list(array.shape)}" for name, array in fed.items()]
    hint = "give inputs of the shapes and numbers that the model is made for: samples, or narrower profiles"
    return StepError("OpenVINO cannot run the model on these inputs", [*facts, *shapes], hint)
