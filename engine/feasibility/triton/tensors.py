"""Tensors: checks `input` and `output` in overrides against the inputs and outputs of the model."""

# Sources: Triton's model_config_utils.cc refuses wrong dimensions, reshapes and batch inputs. Triton's backends for
# ONNX Runtime and TensorRT refuse tensors that differ from the model's tensors ("Model Configuration" in Triton's
# documentation).

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from math import prod
from typing import Any

from engine.feasibility.triton.fault import (
    FREE,
    About,
    ConfigTensor,
    Fault,
    Overrides,
    Path,
    tensor_names,
    twice,
    unknown_tensor,
)
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
        entries = overrides[field]
        if not entries:
            yield Fault(f"`{field}` is an empty list: the model has tensors", (field,), "leave it out")
        for index, tensor in enumerate(entries):
            yield from _tensor(tensor, (field, index), tensors, about)
        names = [tensor.get("name") for tensor in entries]
        for index in twice(names):
            yield Fault(f"{names[index]!r} is listed twice", (field, index, "name"), "leave one out")
        yield from _all_there(field, names, tensors, overrides, about)
    yield from _from_batches(overrides, about)


def _tensor(
    tensor: Mapping[str, Any], path: Path, tensors: Mapping[str, ConfigTensor] | None, about: About
) -> Iterator[Fault]:
    name = tensor.get("name")
    if not name:
        yield Fault("a tensor needs its name", path, f"as in {{name: {next(iter(tensors or ['x']))}, ...}}")
        return
    if tensors is not None and name not in tensors:
        yield unknown_tensor(str(path[0]), name, (*path, "name"), tensors)
        return
    own = tensors[name] if tensors is not None else ConfigTensor()
    yield from _type(tensor, path, own)
    yield from _dims(tensor, path, own, about)
    yield from _reshaped(tensor, path, about)
    yield from _flags(tensor, path, own, about)


def _type(tensor: Mapping[str, Any], path: Path, own: ConfigTensor) -> Iterator[Fault]:
    if "data_type" not in tensor:
        data_type = own.data_type or "TYPE_FP32"
        yield Fault(f"{tensor['name']!r} has no data_type", path, f"add data_type: {data_type}")
    elif own.data_type is not None and tensor["data_type"] != own.data_type:
        what = f"{tensor['name']!r} is {own.data_type} in the model, not {tensor['data_type']}"
        yield Fault(what, (*path, "data_type"), f"use {own.data_type}")


def _dims(tensor: Mapping[str, Any], path: Path, own: ConfigTensor, about: About) -> Iterator[Fault]:
    dims, at, name = tensor.get("dims", []), (*path, "dims"), tensor["name"]
    if not dims:
        shape = f"add dims: {list(own.dims)}" if own.dims else "add dims, without the batch"
        yield Fault(f"{name!r} has no dims", path, shape)
        return
    for index, size in enumerate(dims):
        if size < FREE or size == 0:
            yield Fault(f"a dimension of {size}", (*at, index), "at least 1 is meant, or -1 for any size")
    taken = tensor.get("reshape", {}).get("shape", dims) if "reshape" in tensor else dims
    if own.dims is None or own.takes(taken):
        return
    model = f"{list(own.dims)}"
    if taken and own.takes(taken[1:]) and about.batch != 0:
        what = f"{name!r} has the batch in its dims, {list(taken)}: Triton puts it in front of them by max_batch_size"
        yield Fault(what, at, f"use {model}, or max_batch_size: 0 with the whole shape")
    elif "reshape" in tensor:
        yield Fault(f"{name!r} is reshaped to {list(taken)}, and the model has {model}", (*path, "reshape"), f"{model}")
    else:
        yield Fault(f"{name!r} cannot be {list(taken)}: the model has {model}", at, f"use {model}")


def _reshaped(tensor: Mapping[str, Any], path: Path, about: About) -> Iterator[Fault]:
    if "reshape" not in tensor or not tensor.get("dims"):
        return
    dims, shape, at = tensor["dims"], tensor["reshape"].get("shape", []), (*path, "reshape")
    if not shape and about.batch == 0:
        yield Fault("an empty reshape needs batches: a tensor without dimensions is none", at, "say its shape")
    elif any(size < FREE or size == 0 for size in shape):
        yield Fault(f"{shape} is no shape", at, "at least 1 is meant, or -1 for any size")
    elif dims.count(FREE) != shape.count(FREE) or prod(map(abs, dims)) != prod(map(abs, shape)):
        yield Fault(f"dims {dims} and reshape {shape} hold different numbers of elements", at, "make them the same")


def _flags(tensor: Mapping[str, Any], path: Path, own: ConfigTensor, about: About) -> Iterator[Fault]:
    if tensor.get("format", "FORMAT_NONE") != "FORMAT_NONE" and len(tensor.get("dims", [])) != _IMAGE_RANK:
        what = (
            f"{tensor['format']} is about images of three dimensions, and {tensor['name']!r} has {len(tensor['dims'])}"
        )
        yield Fault(what, (*path, "format"), "leave it out")
    for flag in ("is_shape_tensor", "is_non_linear_format_io"):
        if tensor.get(flag) and about.backend is not Backend.TENSORRT:
            yield Fault(f"`{flag}` is about TensorRT engines, and this model is none", (*path, flag), "leave it out")
    if tensor.get("optional") and about.backend in _ENGINES:
        what = f"`optional`: the model computes nothing without {tensor['name']!r}"
        yield Fault(what, (*path, "optional"), "leave it out")
    if tensor.get("allow_ragged_batch") and not _takes_ragged(own, about):
        what = "`allow_ragged_batch` joins the rows of all requests into one: the model does not take them so"
        yield Fault(what, (*path, "allow_ragged_batch"), "leave it out")
    if tensor.get("label_filename"):
        what = f"the package has no file {tensor['label_filename']!r}: Triton would not find its labels"
        yield Fault(what, (*path, "label_filename"), "leave it out: labels come from the package's postprocess")


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


def _all_there(
    field: str, names: Sequence[str], tensors: Mapping[str, ConfigTensor] | None, overrides: Overrides, about: About
) -> Iterator[Fault]:
    """Yield a fault for each tensor of the model that is missing in a list under `input` or `output`.

    For an ONNX model or an engine the list of outputs may be incomplete, because Triton then returns only the outputs
    in the list.
    """
    if tensors is None or not names or (field == "output" and about.backend in _ENGINES):
        return
    others = {target for entry in overrides.get("batch_input", ()) for target in entry.get("target_name", ())}
    sequences = overrides.get("sequence_batching", {})
    others |= {control.get("name", "") for control in sequences.get("control_input", ())}
    others |= {state.get("input_name", "") for state in sequences.get("state", ())}
    others |= {state.get("output_name", "") for state in sequences.get("state", ())}
    for name, tensor in tensors.items():
        if name not in names and name not in others and not tensor.optional:
            what = f"the {field} {name!r} is missing: a list under `{field}` stands for all of them"
            yield Fault(what, (field,), f"add it, or leave `{field}` out", facts=[tensor_names(tensors)])


def _from_batches(overrides: Overrides, about: About) -> Iterator[Fault]:
    own = {"input": about.inputs, "output": about.outputs}
    for field, target_in in (("batch_input", "input"), ("batch_output", "output")):
        for index, entry in enumerate(overrides.get(field, ())):
            sources, targets = entry.get("source_input", []), entry.get("target_name", [])
            if len(sources) != 1:
                yield Fault(f"`{field}` takes one source_input, not {len(sources)}", (field, index), "name one input")
            if not targets:
                yield Fault(f"`{field}` fills no tensor", (field, index), "add target_name: [...]")
            if field == "batch_input" and entry.get("data_type") not in ("TYPE_INT32", "TYPE_FP32"):
                yield Fault("`batch_input` is made as TYPE_INT32 or TYPE_FP32", (field, index), "say one as data_type")
            for key, names, tensors in (
                ("source_input", sources, own["input"]),
                ("target_name", targets, own[target_in]),
            ):
                for number, name in enumerate(names):
                    if tensors is not None and name not in tensors:
                        kind = "input" if key == "source_input" else target_in
                        yield unknown_tensor(kind, name, (field, index, key, number), tensors)
