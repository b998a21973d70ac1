"""Tensors: checks `input` and `output` against the inputs and outputs of the model."""

# Sources: ValidateIOShape in model_config_utils.cc of triton-inference-server/core refuses wrong reshapes and batch
# inputs. The backends refuse tensors that the model does not have: ValidateInputs of onnxruntime_backend, ValidateIO
# and CompareDimsSupported of tensorrt_backend.

from __future__ import annotations

from collections.abc import Iterator, Mapping
from math import prod
from typing import Any

from engine.feasibility.triton.fault import FREE, About, ConfigTensor, Fault, Overrides, Path, missing, unknown
from engine.runtimes.backends import Backend

_IMAGE_RANK = 3
"""Dimensions of an image without the batch: height, width and channels."""
_ENGINES = (Backend.ONNXRUNTIME, Backend.TENSORRT)
"""Backends that run a graph; the graph itself fixes its inputs and outputs."""


def rule(overrides: Overrides, about: About) -> Iterator[Fault]:
    """Yield a fault for each tensor that the model lacks, or that has another type or shape in the model."""
    for field, tensors in (("input", about.inputs), ("output", about.outputs)):
        if field not in overrides:
            continue
        if not overrides[field]:
            yield Fault(f"`{field}` is an empty list: the model has tensors", (field,), "leave it out")
            continue
        for index, tensor in enumerate(overrides[field]):
            yield from unknown(field, tensor["name"], (field, index, "name"), tensors)
            yield from _tensor(tensor, (field, index), (tensors or {}).get(tensor["name"], ConfigTensor()), about)
        if field == "input" or about.backend not in _ENGINES:  # a backend for graphs returns what the list has
            names = {tensor["name"] for tensor in overrides[field]} | _elsewhere(overrides)
            yield from missing(tensors, names, (field,), f"{field} of the model")
    yield from _from_batches(overrides, about)


def _tensor(tensor: Mapping[str, Any], path: Path, own: ConfigTensor, about: About) -> Iterator[Fault]:
    name = tensor["name"]
    if own.data_type not in (None, tensor["data_type"]):
        what = f"{name!r} is {own.data_type} in the model, not {tensor['data_type']}"
        yield Fault(what, (*path, "data_type"), f"use {own.data_type}")
    yield from _dims(tensor, path, own, about)
    if "reshape" in tensor:
        yield from _reshaped(tensor["dims"], tensor["reshape"].get("shape", []), (*path, "reshape"), about)
    if tensor.get("format", "FORMAT_NONE") != "FORMAT_NONE" and len(tensor["dims"]) != _IMAGE_RANK:
        what = f"{tensor['format']} is about images of three dimensions, and {name!r} has {len(tensor['dims'])}"
        yield Fault(what, (*path, "format"), "leave it out")
    reasons = {
        "is_shape_tensor": about.backend is not Backend.TENSORRT and "is about TensorRT engines",
        "is_non_linear_format_io": about.backend is not Backend.TENSORRT and "is about TensorRT engines",
        "optional": about.backend in _ENGINES and not own.optional and f"the model computes nothing without {name!r}",
        "allow_ragged_batch": not _takes_ragged(own, about) and "the model does not take the joined rows of requests",
        "label_filename": "the package has no such file: labels come from its postprocess",
    }
    for field, reason in reasons.items():
        if reason and tensor.get(field):
            yield Fault(f"`{field}` of {name!r}: {reason}", (*path, field), "leave it out")


def _dims(tensor: Mapping[str, Any], path: Path, own: ConfigTensor, about: About) -> Iterator[Fault]:
    field, name = "reshape" if "reshape" in tensor else "dims", tensor["name"]
    dims = tensor["reshape"].get("shape", []) if field == "reshape" else tensor["dims"]
    if own.dims is None or own.takes(dims):
        return
    what, hint = f"{name!r} cannot be {dims}: the model has {list(own.dims)}", f"use {list(own.dims)}"
    if field == "dims" and own.takes(dims[1:]) and about.batch != 0:
        what = f"{name!r} has the batch in its dims, {dims}: Triton puts it in front of them by max_batch_size"
        hint += ", or max_batch_size: 0 with the whole shape"
    yield Fault(what, (*path, field), hint)


def _reshaped(dims: list[int], shape: list[int], at: Path, about: About) -> Iterator[Fault]:
    if not shape and about.batch == 0:
        yield Fault("an empty reshape needs max_batch_size above 0: Triton has no scalars", at, "say its shape")
    elif _parts(dims) != _parts(shape):
        yield Fault(f"dims {dims} and reshape {shape} hold different numbers of elements", at, "make them the same")


def _parts(shape: list[int]) -> list[int]:
    """Return the number of elements between the free axes of a shape."""
    free = [index for index, size in enumerate(shape) if size == FREE]
    return [prod(shape[start + 1 : end]) for start, end in zip([-1, *free], [*free, len(shape)], strict=True)]


def _takes_ragged(own: ConfigTensor, about: About) -> bool:
    """Tell whether Triton may join the rows of several requests into a single row for the model.

    The rows may also be joined in a model that runs no graph, and where the dims of the input or the model's
    max_batch_size are not known.
    """
    if about.batch == 0:
        return False
    if about.backend not in _ENGINES or own.dims is None or about.batch is None:
        return True
    return not own.dims  # the batch must be the only axis of the input


def _elsewhere(overrides: Overrides) -> set[str]:
    """Return the names of the tensors that Triton itself fills or keeps, from batches and from sequences."""
    sequences = overrides.get("sequence_batching", {})
    filled = {target for entry in overrides.get("batch_input", ()) for target in entry["target_name"]}
    controls = {control["name"] for control in sequences.get("control_input", ())}
    states = [(state["input_name"], state["output_name"]) for state in sequences.get("state", ())]
    return filled | controls | {name for pair in states for name in pair}


def _from_batches(overrides: Overrides, about: About) -> Iterator[Fault]:
    for field, target, targets in (("batch_input", "input", about.inputs), ("batch_output", "output", about.outputs)):
        for index, entry in enumerate(overrides.get(field, ())):
            if len(entry["source_input"]) > 1:
                yield Fault(f"`{field}` takes one source_input", (field, index, "source_input"), "name one input")
            if field == "batch_input" and entry["data_type"] not in ("TYPE_INT32", "TYPE_FP32"):
                what, at = "`batch_input` is made as TYPE_INT32 or TYPE_FP32", (field, index, "data_type")
                yield Fault(what, at, "say one as data_type")
            for key, kind, tensors in (("source_input", "input", about.inputs), ("target_name", target, targets)):
                for number, name in enumerate(entry[key]):
                    yield from unknown(kind, name, (field, index, key, number), tensors)
