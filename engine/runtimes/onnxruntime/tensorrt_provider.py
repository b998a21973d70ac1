"""Options of ONNX Runtime's TensorRT provider, most of which have the same names in Triton's ONNX Runtime backend."""

# Source: ONNX Runtime's documentation, "NVIDIA - TensorRT", "Configurations", and the table "Parameter mapping" in the
# README of triton-inference-server/onnxruntime_backend. For the values of shape tensors: `MakeInputNameShapePair` and
# `ApplyProfileShapesFromProviderOptions` of the provider. Not yet run on a GPU.

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from engine.kit.onnx.onnx_files import Input
from engine.recipe.values import Profile, Range
from engine.runtimes import profiles as trt_profiles
from engine.runtimes.execution import Execution
from engine.runtimes.profiles import Shapes


def options(inputs: Mapping[str, Input], execution: Execution) -> dict[str, str]:
    """Return the options of ONNX Runtime's TensorRT provider for a model, by the option's name.

    The returned options set no precision; where the provider needs options for the precisions of the graph,
    `typed_networks.options` returns them. Raises StepError where a profile does not fit the model.
    """
    settings, provider_options = execution.options, {}
    shapes = _spanning(trt_profiles.shapes(inputs, _profiles(settings)))
    if ranges := {**shapes, **_values(settings.get("shape_values", ()))}:
        for number, end in enumerate(("min", "opt", "max")):
            pairs = (f"{name}:{'x'.join(map(str, ends[number]))}" for name, ends in ranges.items())
            provider_options[f"trt_profile_{end}_shapes"] = ",".join(pairs)
    if settings["workspace"] is not None:
        provider_options["trt_max_workspace_size"] = str(settings["workspace"])
    if settings["optimization_level"] is not None:
        provider_options["trt_builder_optimization_level"] = str(settings["optimization_level"])
    if settings["cuda_graph"]:
        provider_options["trt_cuda_graph_enable"] = "1"
    return provider_options


def _profiles(settings: Mapping[str, Any]) -> tuple[Profile, ...]:
    """Return the profiles of the recipe, parsed from the JSON values in the options of the execution."""
    return tuple({axis: Range(**extents) for axis, extents in profile.items()} for profile in settings["profiles"])


def _values(stated: Sequence[Mapping[str, Mapping[str, Sequence[int]]]]) -> Shapes:
    """Return the values of shape tensors for one profile that covers all; the provider takes them in place of shapes.

    The optimum is the maximum: where ONNX Runtime is built on TensorRT 10.11 or later, the provider exchanges the two,
    and TensorRT refuses an optimum above the maximum (pull request 32415 of microsoft/onnxruntime mends it). An input
    that is no shape tensor keeps its fixed shape, whatever values it is given.
    """
    profiles = [
        {name: (tuple(ends["min"]), tuple(ends["max"]), tuple(ends["max"])) for name, ends in profile.items()}
        for profile in stated
    ]
    spanning = _spanning(profiles) if profiles else {}
    return {name: (least, most, most) for name, (least, _, most) in spanning.items()}


def _spanning(shapes: Sequence[Shapes]) -> Shapes:
    """Return one profile that covers all: each input's least min, its opt in the first profile, and its greatest max.

    ONNX Runtime's TensorRT provider accepts several profiles but runs only the first, so inputs in the shapes of any
    other profile fail (pull request 31624 of microsoft/onnxruntime is meant to fix the failure).
    """
    return {
        name: (
            tuple(map(min, zip(*(each[name][0] for each in shapes), strict=True))),
            usual,
            tuple(map(max, zip(*(each[name][2] for each in shapes), strict=True))),
        )
        for name, (_, usual, _) in shapes[0].items()
    }
