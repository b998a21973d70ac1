"""Runs an ONNX graph in TensorRT or TensorRT-RTX with all floating-point tensors as outputs, for `recipe layers`."""

# No machine with a GPU has run this yet. What a machine without a GPU can do is tested with TensorRT-RTX: the network
# with all outputs, and an engine of it.

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from engine.kit.onnx import foreign_functions
from engine.runtimes.tensorrt.api import product

if TYPE_CHECKING:
    import numpy as np

    from engine.runtimes.execution import Execution

_FLOATS = ("FLOAT", "HALF", "BF16")
"""TensorRT's names of the types whose tensors are compared: numpy has no fp8 and no int4."""


def on_device(execution: Execution) -> Callable[[Path, Mapping[str, np.ndarray]], Any]:
    """Return the function that makes Polygraphy's runner for the GPU of this machine."""
    return partial(runner, rtx=product(execution.runtime).anywhere)


def runner(model: Path, inputs: Mapping[str, np.ndarray], *, rtx: bool = False) -> Any:
    """Return Polygraphy's runner for a strongly typed engine of a model, with a profile of exactly these inputs."""
    foreign_functions.use_tensorrt_rtx(rtx)
    from polygraphy.backend.trt import CreateConfig, EngineFromNetwork, Profile, TrtRunner

    profile = Profile()
    for name, array in inputs.items():
        profile.add(name, array.shape, array.shape, array.shape)
    return TrtRunner(EngineFromNetwork(network(model), CreateConfig(profiles=[profile])))


def network(model: Path) -> Any:
    """Return Polygraphy's loader of a strongly typed network in which each floating-point tensor is an output."""
    from polygraphy.backend.trt import ModifyNetworkOutputs, NetworkFromOnnxPath

    loaded = NetworkFromOnnxPath(str(model), strongly_typed=True)()
    layers = (loaded[1].get_layer(number) for number in range(loaded[1].num_layers))
    outputs = [layer.get_output(number) for layer in layers for number in range(layer.num_outputs)]
    names = [tensor.name for tensor in outputs if tensor.dtype.name in _FLOATS]
    return ModifyNetworkOutputs(loaded, outputs=list(dict.fromkeys(names)))
