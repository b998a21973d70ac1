"""Tensors: checks `input` and `output` against the model, and the sizes of axes in each request."""

# Sources: ValidateIOShape in model_config_utils.cc of triton-inference-server/core refuses wrong reshapes and batch
# inputs. The backends refuse tensors that the model does not have: ValidateInputs of onnxruntime_backend, ValidateIO
# and CompareDimsSupported of tensorrt_backend.

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from math import prod
from typing import Any

from engine.feasibility.triton.fault import FREE, About, ConfigTensor, Fault, Overrides, Path, missing, unknown
from engine.runtimes.backends import Backend
from engine.runtimes.triton_tensors import TEXT

_IMAGE_RANK = 3
"""Dimensions of an image without the batch: height, width and channels."""
_ENGINES = (Backend.ONNXRUNTIME, Backend.TENSORRT)
"""Backends that run a graph; the graph itself fixes its inputs and outputs."""
Shapes = Sequence[tuple[str, Sequence[int], Path]]
"""The tensors of one request: the name of each, its dims, and the path of the dims in the overrides."""
_OF_TEXTS, _MOST_TEXTS = ("tokenizer", "ensemble"), 2
"""The parts of a package that take texts, and the largest number of texts in a row (a pair)."""


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
    """Tell whether Triton may join rows of requests into one; true, too, where dims or max_batch_size are unknown."""
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


def sizes(overrides: Overrides, about: About) -> Iterator[Fault]:
    """Yield a fault for each size that no profile takes, and for each axis that has two sizes in one request."""
    for shapes in _together(overrides):
        yield from _sizes(shapes, about)


def _together(overrides: Overrides) -> Iterator[Shapes]:
    """Yield the tensors of each request that the overrides describe: in `input`, each warm-up and each CUDA graph."""
    inputs = overrides.get("input", ())
    yield [
        (tensor.get("name", ""), _taken(tensor), ("input", index, "reshape" if "reshape" in tensor else "dims"))
        for index, tensor in enumerate(inputs)
    ]
    reshaped = {tensor.get("name") for tensor in inputs if "reshape" in tensor}
    for number, sample in enumerate(overrides.get("model_warmup", ())):
        within: Path = ("model_warmup", number, "inputs")
        tensors = {name: tensor for name, tensor in sample.get("inputs", {}).items() if name not in reshaped}
        yield [(name, tensor.get("dims", ()), (*within, name, "dims")) for name, tensor in tensors.items()]
    for number, spec in enumerate(overrides.get("optimization", {}).get("cuda", {}).get("graph_spec", ())):
        within = ("optimization", "cuda", "graph_spec", number, "input")
        yield [(name, shape.get("dim", ()), (*within, name, "dim")) for name, shape in spec.get("input", {}).items()]


def _taken(tensor: Overrides) -> Sequence[int]:
    """Return the dims that the model takes: the shape of `reshape` where the tensor has this field, else its dims."""
    dims: Sequence[int] = tensor["reshape"].get("shape", ()) if "reshape" in tensor else tensor.get("dims", ())
    return dims


def _sizes(shapes: Shapes, about: About) -> Iterator[Fault]:
    first: dict[str, tuple[int, str]] = {}
    for name, dims, at in shapes:
        if about.part in _OF_TEXTS and name == TEXT and len(dims) == 1 and dims[0] > _MOST_TEXTS:
            what = f"{dims[0]} texts a row: a row of {name} is one text, or two that belong together"
            yield Fault(what, at, "use [1], or [2] for pairs")
        tensor = (about.inputs or {}).get(name, ConfigTensor())
        for axis, size in zip(tensor.axes, dims, strict=False):  # `rule` reports a wrong number of dims
            if axis is None or size < 1:
                continue
            least, most = about.sizes.get(axis, (size, size))
            if not least <= size <= most:
                what = f"{name!r} with {axis} {size}, and the profiles take {least} to {most}"
                yield Fault(what, at, "stay within them, or widen a profile")
            agreed, other = first.setdefault(axis, (size, name))
            if size != agreed:
                what = f"{axis} is {size} in {name!r} and {agreed} in {other!r}: the model has one for both"
                yield Fault(what, at, "make them the same")
