"""Tensors: `input` and `output`, held against those that the model has."""

# Sources: Triton's model_config_utils.cc refuses dimensions, reshapes and batch inputs, its backends for ONNX Runtime
# and TensorRT what differs from the model's own tensors ("Model Configuration" in Triton's documentation).

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from math import prod
from typing import Any

from engine.feasibility.triton.fault import FREE, About, ConfigTensor, Fault, Path, Said, listed, twice, unknown_tensor
from engine.runtimes.backends import Backend

_IMAGE_RANK = 3
_ENGINES = (Backend.ONNXRUNTIME, Backend.TENSORRT)


def rule(said: Said, about: About) -> Iterator[Fault]:
    """Yield tensors that the model does not have, or not like this."""
    for field, tensors in (("input", about.inputs), ("output", about.outputs)):
        if field not in said:
            continue
        listed = said[field]
        if not listed:
            yield Fault(f"`{field}` is an empty list: the model has tensors", (field,), "leave it out")
        for index, tensor in enumerate(listed):
            yield from _tensor(tensor, (field, index), tensors, about)
        names = [tensor.get("name") for tensor in listed]
        for index in twice(names):
            yield Fault(f"{names[index]!r} is listed twice", (field, index, "name"), "leave one out")
        yield from _all_there(field, names, tensors, said, about)
    yield from _made_of_batches(said, about)


def _tensor(
    said: Mapping[str, Any], path: Path, tensors: Mapping[str, ConfigTensor] | None, about: About
) -> Iterator[Fault]:
    name = said.get("name")
    if not name:
        yield Fault("a tensor needs its name", path, f"as in {{name: {next(iter(tensors or ['x']))}, ...}}")
        return
    if tensors is not None and name not in tensors:
        yield unknown_tensor(str(path[0]), name, (*path, "name"), tensors)
        return
    own = tensors[name] if tensors is not None else ConfigTensor()
    yield from _type(said, path, own)
    yield from _dims(said, path, own, about)
    yield from _reshaped(said, path, about)
    yield from _flags(said, path, own, about)


def _type(said: Mapping[str, Any], path: Path, own: ConfigTensor) -> Iterator[Fault]:
    if "data_type" not in said:
        found = own.data_type or "TYPE_FP32"
        yield Fault(f"{said['name']!r} has no data_type", path, f"add data_type: {found}")
    elif own.data_type is not None and said["data_type"] != own.data_type:
        what = f"{said['name']!r} is {own.data_type} in the model, not {said['data_type']}"
        yield Fault(what, (*path, "data_type"), f"use {own.data_type}")


def _dims(said: Mapping[str, Any], path: Path, own: ConfigTensor, about: About) -> Iterator[Fault]:
    dims, at, name = said.get("dims", []), (*path, "dims"), said["name"]
    if not dims:
        shape = f"add dims: {list(own.dims)}" if own.dims else "add dims, without the batch"
        yield Fault(f"{name!r} has no dims", path, shape)
        return
    for index, size in enumerate(dims):
        if size < FREE or size == 0:
            yield Fault(f"a dimension of {size}", (*at, index), "at least 1 is meant, or -1 for any size")
    wanted = said.get("reshape", {}).get("shape", dims) if "reshape" in said else dims
    if own.dims is None or own.takes(wanted):
        return
    model = f"{list(own.dims)}"
    if wanted and own.takes(wanted[1:]) and about.batch != 0:
        what = f"{name!r} has the batch in its dims, {list(wanted)}: Triton puts it in front of them by max_batch_size"
        yield Fault(what, at, f"use {model}, or max_batch_size: 0 with the whole shape")
    elif "reshape" in said:
        yield Fault(
            f"{name!r} is reshaped to {list(wanted)}, and the model has {model}", (*path, "reshape"), f"{model}"
        )
    else:
        yield Fault(f"{name!r} cannot be {list(wanted)}: the model has {model}", at, f"use {model}")


def _reshaped(said: Mapping[str, Any], path: Path, about: About) -> Iterator[Fault]:
    if "reshape" not in said or not said.get("dims"):
        return
    dims, shape, at = said["dims"], said["reshape"].get("shape", []), (*path, "reshape")
    if not shape and about.batch == 0:
        yield Fault("an empty reshape needs batches: a tensor without dimensions is none", at, "say its shape")
    elif any(size < FREE or size == 0 for size in shape):
        yield Fault(f"{shape} is no shape", at, "at least 1 is meant, or -1 for any size")
    elif dims.count(FREE) != shape.count(FREE) or prod(map(abs, dims)) != prod(map(abs, shape)):
        yield Fault(f"dims {dims} and reshape {shape} hold different numbers of elements", at, "make them the same")


def _flags(said: Mapping[str, Any], path: Path, own: ConfigTensor, about: About) -> Iterator[Fault]:
    if said.get("format", "FORMAT_NONE") != "FORMAT_NONE" and len(said.get("dims", [])) != _IMAGE_RANK:
        what = f"{said['format']} is about images of three dimensions, and {said['name']!r} has {len(said['dims'])}"
        yield Fault(what, (*path, "format"), "leave it out")
    for flag in ("is_shape_tensor", "is_non_linear_format_io"):
        if said.get(flag) and about.backend is not Backend.TENSORRT:
            yield Fault(f"`{flag}` is about TensorRT engines, and this model is none", (*path, flag), "leave it out")
    if said.get("optional") and about.backend in _ENGINES:
        what = f"`optional`: the model computes nothing without {said['name']!r}"
        yield Fault(what, (*path, "optional"), "leave it out")
    whole_rank = None if own.dims is None or about.batch is None else len(own.dims) + (about.batch > 0)
    if said.get("allow_ragged_batch") and (
        about.batch == 0 or (about.backend in _ENGINES and whole_rank not in (None, 1))
    ):
        what = "`allow_ragged_batch` joins the rows of all requests into one: the model does not take them so"
        yield Fault(what, (*path, "allow_ragged_batch"), "leave it out")
    if said.get("label_filename"):
        what = f"the package has no file {said['label_filename']!r}: Triton would not find its labels"
        yield Fault(what, (*path, "label_filename"), "leave it out: labels come from the package's postprocess")


def _all_there(
    field: str, names: Sequence[str], tensors: Mapping[str, ConfigTensor] | None, said: Said, about: About
) -> Iterator[Fault]:
    """Refuse a list of inputs that lacks one; outputs may be left out of an engine's, which nobody asks for."""
    if tensors is None or not names or (field == "output" and about.backend in _ENGINES):
        return
    others = {target for made in said.get("batch_input", ()) for target in made.get("target_name", ())}
    sequences = said.get("sequence_batching", {})
    others |= {control.get("name", "") for control in sequences.get("control_input", ())}
    others |= {state.get("input_name", "") for state in sequences.get("state", ())}
    others |= {state.get("output_name", "") for state in sequences.get("state", ())}
    for name, tensor in tensors.items():
        if name not in names and name not in others and not tensor.optional:
            what = f"the {field} {name!r} is missing: a list under `{field}` stands for all of them"
            yield Fault(what, (field,), f"add it, or leave `{field}` out", facts=[listed(tensors)])


def _made_of_batches(said: Said, about: About) -> Iterator[Fault]:
    known = {"input": about.inputs, "output": about.outputs}
    for field, target_in in (("batch_input", "input"), ("batch_output", "output")):
        for index, made in enumerate(said.get(field, ())):
            sources, targets = made.get("source_input", []), made.get("target_name", [])
            if len(sources) != 1:
                yield Fault(f"`{field}` takes one source_input, not {len(sources)}", (field, index), "name one input")
            if not targets:
                yield Fault(f"`{field}` fills no tensor", (field, index), "add target_name: [...]")
            if field == "batch_input" and made.get("data_type") not in ("TYPE_INT32", "TYPE_FP32"):
                yield Fault("`batch_input` is made as TYPE_INT32 or TYPE_FP32", (field, index), "say one as data_type")
            for key, names, tensors in (
                ("source_input", sources, known["input"]),
                ("target_name", targets, known[target_in]),
            ):
                for number, name in enumerate(names):
                    if tensors is not None and name not in tensors:
                        kind = "input" if key == "source_input" else target_in
                        yield unknown_tensor(kind, name, (field, index, key, number), tensors)
