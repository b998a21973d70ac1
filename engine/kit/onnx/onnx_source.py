"""A user's ONNX file: its external data files, inputs, outputs and operators, found without reading tensors."""

from __future__ import annotations

import math
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from engine.errors import StepError
from engine.feasibility.facts import GraphFacts
from engine.kit.checkpoints import weights
from engine.kit.onnx import external_data, nvidia_qdq, onnx_files, opsets, quantized_types, refusals
from engine.runtimes.preparation import CONTRIBUTED
from engine.text import distribution, reasons

if TYPE_CHECKING:
    import onnx


_QUANTIZED = {
    *((CONTRIBUTED, operator) for operator in opsets.READ_AS_STANDARD),
    *((nvidia_qdq.DOMAIN, operator) for operator in nvidia_qdq.TYPES),
}
"""Q/DQ operators of other domains: runtimes read them as ONNX's, or `fetch` replaces them."""


def read(path: Path) -> onnx.ModelProto:
    """Return the model at `path` without reading its external data.

    Raises StepError where the file is no ONNX model or a git-lfs pointer, and where a name in it is not UTF-8.
    """
    weights.refuse_pointer(path)
    try:
        import onnx  # noqa: F401  for the error
    except ImportError as error:
        raise StepError(
            "reading an ONNX file needs the package onnx", reasons.facts(error), distribution.install("onnx")
        ) from None
    model = onnx_files.read(path)
    if not model.graph.output:
        raise onnx_files.no_model(path, "it holds no graph with outputs")
    broken = next((text for text in _texts(model) if not isinstance(text, str)), None)
    if broken is not None:
        raise StepError(
            f"{path.name} has a name that is not UTF-8",
            [f"the name of a tensor, an axis, a node or a file: {broken!r}"],
            "ONNX asks for UTF-8: rename it, or export the model again with plain names",
        )
    return model


def _texts(model: onnx.ModelProto) -> Iterator[object]:
    """Yield the names in a model; protobuf gives a name that is not UTF-8 as bytes."""
    for graph in onnx_files.graphs(model.graph):
        for value in (*graph.input, *graph.output, *graph.value_info):
            yield value.name
            yield from (dim.dim_param for dim in value.type.tensor_type.shape.dim)
    for tensor in onnx_files.tensors(model):
        yield tensor.name
        yield from (entry.value for entry in tensor.external_data)
    for node in onnx_files.nodes(model):
        yield from (node.name, *node.input, *node.output)


def data_files(path: Path) -> list[str]:
    """Return the files of external data of the model at `path`, relative to the directory of the model.

    Every returned file exists and is as long as the model's tensors need.

    Raises StepError where the file at `path` is no ONNX model, and where a file of external data lies outside the
    model's directory, is missing or is too short.
    """
    return external_data.complete(onnx_files.tensors(read(path)), path)


def describe(model: onnx.ModelProto) -> GraphFacts:
    """Return what the graph says about the model: inputs, outputs, operators, parameters and quantized types.

    Raises StepError for a model without inputs, for an input or output that is no tensor of numbers, and for an input
    whose number of axes is not stated.
    """
    inputs = onnx_files.inputs(model)
    if not inputs:
        raise StepError(
            "the model takes no inputs: there is nothing to serve",
            [f"it gives: {', '.join(value.name for value in model.graph.output)}"],
            "if the exporter folded the inputs into constants, export the model again with graph inputs",
        )
    for spec in inputs.values():
        refusals.refuse_unusual(spec)
        refusals.refuse_unranked(spec)
    outputs = onnx_files.outputs(model)
    for spec in outputs.values():
        refusals.refuse_text(spec, "output")
    return GraphFacts(
        architecture=f"ONNX, opset {opsets.version(model)}",
        parameters=sum(math.prod(tensor.dims) for tensor in model.graph.initializer),
        axes={name: tuple(value.shape) for name, value in inputs.items()},
        types={name: value.dtype for name, value in inputs.items()},
        outputs={name: (value.dtype, tuple(value.shape) if value.ranked else None) for name, value in outputs.items()},
        operators=_foreign(model),
        quantized=quantized_types.of(model),
    )


def _foreign(model: onnx.ModelProto) -> dict[str, tuple[str, ...]]:
    """Return the operators that are not in ONNX's own domain, by domain, without functions that the model defines."""
    own = {(function.domain, function.name) for function in model.functions}
    operators: dict[str, set[str]] = {}
    for node in onnx_files.nodes(model):
        if node.domain not in opsets.STANDARD and (node.domain, node.op_type) not in own | _QUANTIZED:
            operators.setdefault(node.domain, set()).add(node.op_type)
    return {domain: tuple(sorted(operators[domain])) for domain in sorted(operators)}
