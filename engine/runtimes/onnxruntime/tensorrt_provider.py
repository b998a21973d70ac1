"""The options of ONNX Runtime's TensorRT provider, which Triton's backend takes under the same names."""

# Source: ONNX Runtime's documentation, "NVIDIA - TensorRT", "Configurations", and the table "Parameter mapping" in the
# README of triton-inference-server/onnxruntime_backend. Not yet run on a GPU.

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from engine.kit.onnx.onnx_files import Input
from engine.recipe.schema import Profile, Range
from engine.runtimes import profiles as trt_profiles
from engine.runtimes.execution import Execution
from engine.runtimes.profiles import Shapes


def options(inputs: Mapping[str, Input], execution: Execution) -> dict[str, str]:
    """Return how the provider builds its engine of a model and runs it.

    Precision is no option: without `trt_fp16_enable` and its like the provider builds a strongly typed network, which
    computes in what the ONNX graph says (`kSTRONGLY_TYPED` in ONNX Runtime's tensorrt_execution_provider.cc).
    Raises StepError where a profile does not fit the model.
    """
    said, given = execution.options, {}
    if shapes := _spanning(trt_profiles.shapes(inputs, _profiles(said))):
        for number, end in enumerate(("min", "opt", "max")):
            pairs = (f"{name}:{'x'.join(map(str, ends[number]))}" for name, ends in shapes.items())
            given[f"trt_profile_{end}_shapes"] = ",".join(pairs)
    if said["workspace"] is not None:
        given["trt_max_workspace_size"] = str(said["workspace"])
    if said["optimization_level"] is not None:
        given["trt_builder_optimization_level"] = str(said["optimization_level"])
    if said["cuda_graph"]:
        given["trt_cuda_graph_enable"] = "1"
    return given


def _profiles(said: Mapping[str, Any]) -> tuple[Profile, ...]:
    """Return the profiles of a recipe as they were before they became JSON."""
    return tuple({axis: Range(**extents) for axis, extents in profile.items()} for profile in said["profiles"])


def cached(directory: Path | str, *, prefix: str) -> dict[str, str]:
    """Return the options that keep engines, named with `prefix`, and timings in a directory between sessions.

    The provider looks there for the engine of the same graph, precision, GPU and its own version.
    """
    return {
        "trt_engine_cache_enable": "1",
        "trt_engine_cache_path": str(directory),
        "trt_engine_cache_prefix": prefix,
        "trt_timing_cache_enable": "1",
        "trt_timing_cache_path": str(directory),
    }


def _spanning(shapes: Sequence[Shapes]) -> Shapes:
    """Return one profile that spans all: the least, the usual of the first, the greatest.

    The provider takes several profiles and then stays on the first, so that the shapes of the others fail
    (microsoft/onnxruntime, pull request 31624, which is to change that).
    """
    return {
        name: (
            tuple(map(min, zip(*(each[name][0] for each in shapes), strict=True))),
            usual,
            tuple(map(max, zip(*(each[name][2] for each in shapes), strict=True))),
        )
        for name, (_, usual, _) in shapes[0].items()
    }
