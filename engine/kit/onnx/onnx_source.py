"""A user's ONNX file: its data files, inputs, outputs and operators, read without tensors, and what is refused."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from engine.errors import StepError
from engine.feasibility.facts import GraphFacts
from engine.kit.checkpoints import weights
from engine.kit.onnx import external_data, onnx_files, opsets, qdq_operators
from engine.kit.onnx.onnx_files import Input
from engine.runtimes.preparation import CONTRIBUTED
from engine.text import distribution, reasons

if TYPE_CHECKING:
    import onnx

End = Literal["input", "output"]

_QUANTIZED = {
    *((CONTRIBUTED, operator) for operator in opsets.READ_AS_STANDARD),
    *((qdq_operators.NVIDIA_DOMAIN, operator) for operator in qdq_operators.NVIDIA),
}
"""Q/DQ operators of other domains: runtimes read them as ONNX's, or `fetch` replaces them."""
_INTEGERS = tuple(f"{sign}int{bits}" for sign in ("", "u") for bits in (8, 16, 32, 64))
_NUMBERS = ("bool", "float16", "float32", "float64", *_INTEGERS)
"""The types of inputs and outputs that numpy can hold, and so samples."""
_NO_TEXT: Mapping[End, str] = {
    "input": "export the part of the model that takes numbers: a tokenizer makes them of text",
    "output": "export it with numbers instead: a classifier that was trained on integer labels gives integers",
}


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
        refuse_unusual(spec)
        refuse_unranked(spec)
    outputs = onnx_files.outputs(model)
    for spec in outputs.values():
        refuse_text(spec, "output")
    return GraphFacts(
        architecture=f"ONNX, opset {opsets.version(model)}",
        parameters=sum(math.prod(tensor.dims) for tensor in model.graph.initializer),
        axes={name: tuple(value.shape) for name, value in inputs.items()},
        types={name: value.dtype for name, value in inputs.items()},
        outputs={name: (value.dtype, tuple(value.shape) if value.ranked else None) for name, value in outputs.items()},
        operators=_foreign(model),
        quantized=qdq_operators.quantized_types(model),
    )


def _foreign(model: onnx.ModelProto) -> dict[str, tuple[str, ...]]:
    """Return the operators that are not in ONNX's own domain, by domain, without functions that the model defines."""
    own = {(function.domain, function.name) for function in model.functions}
    operators: dict[str, set[str]] = {}
    for node in onnx_files.nodes(model):
        if node.domain not in opsets.STANDARD and (node.domain, node.op_type) not in own | _QUANTIZED:
            operators.setdefault(node.domain, set()).add(node.op_type)
    return {domain: tuple(sorted(operators[domain])) for domain in sorted(operators)}


def refuse_unusual(value: Input, end: End = "input") -> None:
    """Raise StepError for an input or output of a type that numpy lacks: text, bfloat16 or 8-bit floats."""
    refuse_text(value, end)
    if value.dtype not in _NUMBERS:
        raise StepError(
            f"the model's {end} {value.name} is {value.dtype}: that is not supported yet",
            [f"supported: {', '.join(_NUMBERS)}"],
            f"export the model with an {end} of float32, and cast it inside of the graph",
        )


def refuse_text(value: Input, end: End) -> None:
    """Raise StepError for an input or output that is text."""
    if value.dtype in {"object", "str"}:
        raise StepError(f"the model's {end} {value.name} is text: that is not supported", hint=_NO_TEXT[end])


def refuse_unranked(value: Input) -> None:
    """Raise StepError for an input whose number of axes the model does not state: Triton cannot describe the input."""
    if not value.ranked:
        raise StepError(
            f"the model does not state the number of axes of its input {value.name}",
            hint="export it with shapes; an axis in a shape may have any size (dynamic_axes, dynamic_shapes)",
        )
