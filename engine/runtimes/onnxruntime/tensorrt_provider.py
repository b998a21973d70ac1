"""Options of ONNX Runtime's TensorRT provider, most of which have the same names in Triton's ONNX Runtime backend."""

# Source: ONNX Runtime's documentation, "NVIDIA - TensorRT", "Configurations", and the table "Parameter mapping" in the
# README of triton-inference-server/onnxruntime_backend. For the values of shape tensors: `MakeInputNameShapePair` and
# `ApplyProfileShapesFromProviderOptions` of the provider. Not yet run on a GPU.

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from engine.errors import StepError
from engine.kit.onnx import onnx_files
from engine.kit.onnx.onnx_files import Input
from engine.recipe.values import Profile, Range
from engine.runtimes import profiles as trt_profiles
from engine.runtimes.execution import Execution
from engine.runtimes.onnxruntime import providers as ort_providers
from engine.runtimes.profiles import Shapes

if TYPE_CHECKING:
    import onnx

_OPTIONS: Mapping[str, Mapping[str, str]] = {
    # The fallback keeps the squares and means of written-out normalizations in fp32, as the graph has them.
    "fp16": {"trt_fp16_enable": "1", "trt_layer_norm_fp32_fallback": "1"},
    "bf16": {"trt_bf16_enable": "1"},
    "int8": {"trt_int8_enable": "1"},
}
_NAMES = {
    "FLOAT16": "fp16", "BFLOAT16": "bf16", "INT4": "int4", "UINT4": "int4", "FLOAT8E4M3FN": "fp8", "FLOAT8E5M2": "fp8",
    "FLOAT4E2M1": "fp4",
}  # fmt: skip
"""ONNX's type -> the name of the precision in recipes, of types that are always a precision."""


def options(inputs: Mapping[str, Input], execution: Execution) -> dict[str, str]:
    """Return the options of ONNX Runtime's TensorRT provider for a model, by the option's name.

    The returned options set no precision; where the provider needs options for the precisions of the graph,
    `precisions` returns them. Raises StepError where a profile does not fit the model.
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


def precisions(graph: onnx.ModelProto, version: str) -> dict[str, str]:
    """Return the options of the TensorRT provider that allow the precisions of a graph, by the option's name.

    `version` is the version of ONNX Runtime. The options are empty where the provider takes the precisions from the
    graph. Where it does not, it would compute everything in fp32; with the options TensorRT chooses, for each layer,
    fp32 or a precision that the options allow. Raises StepError for a precision that no option allows.
    """
    if ort_providers.takes_types(version):
        return {}
    stated = stated_precisions(graph)
    beyond = sorted(stated - _OPTIONS.keys())
    if beyond:
        raise StepError(
            f"ONNX Runtime {version} cannot compute in {' and '.join(beyond)} with TensorRT",
            [ort_providers.WEAKLY_TYPED, f"it has options for {', '.join(_OPTIONS)}"],
            ort_providers.TYPED_HINT,
        )
    if not stated:
        return {}
    allowed = ", ".join(sorted(stated))
    print(f"onnxruntime-gpu {version}: {ort_providers.WEAKLY_TYPED}; allowed: {allowed}, TensorRT chooses by layer")
    return {name: value for each in sorted(stated) for name, value in _OPTIONS[each].items()}


def stated_precisions(graph: onnx.ModelProto) -> frozenset[str]:
    """Return the precisions below fp32 that a graph states, by the types of its stored tensors, casts and Q/DQ nodes.

    Integers of 8 bits are int8 only where a QuantizeLinear or DequantizeLinear uses them, since other nodes may hold
    bytes or indices.
    """
    from onnx import TensorProto

    types = {tensor.data_type for tensor in onnx_files.tensors(graph)}
    types |= {value.type.tensor_type.elem_type for value in (*graph.graph.input, *graph.graph.output)}
    quantizes = False
    for node in onnx_files.nodes(graph):
        types |= {attribute.i for attribute in node.attribute if attribute.name in ("to", "dtype", "output_dtype")}
        quantizes |= node.op_type in ("QuantizeLinear", "DequantizeLinear")
    names = {TensorProto.DataType.Name(number) for number in types if number in TensorProto.DataType.values()}
    precisions = {_NAMES[name] for name in names if name in _NAMES}
    few = precisions & {"fp8", "int4", "fp4"}
    eight = names & {"INT8", "UINT8"} or not few
    return frozenset(precisions | ({"int8"} if quantizes and eight else set()))
