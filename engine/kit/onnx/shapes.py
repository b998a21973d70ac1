"""Shapes: the shapes that a model states for its tensors, and inferred shapes added to the model."""

from __future__ import annotations

from typing import TYPE_CHECKING

from engine.kit.onnx import mapped_weights, onnx_files
from engine.runtimes.preparation import CONTRIBUTED

if TYPE_CHECKING:
    import onnx

_READABLE = 1 << 20
"""The number of bytes up to which a stored tensor may decide another tensor's shape; larger tensors are weights."""
_IMPLIED = {CONTRIBUTED: 1, "com.microsoft.nchwc": 1, "ai.onnx.ml": 1, "ai.onnx.training": 1}


def import_missing_domains(model: onnx.ModelProto) -> list[str]:
    """Import the well-known operator domains that nodes use without an import, and return the names of the domains."""
    imported = {entry.domain for entry in model.opset_import}
    used = {node.domain for node in onnx_files.nodes(model)}
    missing = sorted((used - imported) & set(_IMPLIED))
    for domain in missing:
        model.opset_import.add(domain=domain, version=_IMPLIED[domain])
    return missing


def name_axes(model: onnx.ModelProto) -> None:
    """Name the axes of the model's inputs that have neither a size nor a name, as `onnx_files.inputs` calls them.

    A size of -1 and the name `?` mean any size. Shape inference would take two axes with the name `?` for one axis, so
    no tensor keeps such a size or name.
    """
    for spec, value in zip(map(onnx_files.described, model.graph.input), model.graph.input, strict=True):
        for axis, dim in zip(spec.shape, _dims(value), strict=True):
            if isinstance(axis, str):
                dim.dim_param = axis
    for graph in onnx_files.graphs(model.graph):
        for value in (*graph.input, *graph.output, *graph.value_info):
            for dim in filter(onnx_files.is_nameless, _dims(value)):
                dim.Clear()


def skeleton(model: onnx.ModelProto) -> onnx.ModelProto:
    """Return a copy of a mapped model for shape inference, in which large weights are inputs without numbers.

    Without large weights, shape inference takes little time, and is possible for models above 2 GB.
    """
    from onnx import helper

    copy = onnx_files.copied(model)
    taken = {value.name for value in copy.graph.input}
    large = [each for each in copy.graph.initializer if mapped_weights.stored_bytes(each) > _READABLE]
    copy.graph.input.extend(
        helper.make_tensor_value_info(each.name, each.data_type, each.dims) for each in large if each.name not in taken
    )
    onnx_files.remove_named(copy.graph.initializer, {each.name for each in large})
    for tensor in onnx_files.tensors(copy):
        mapped_weights.load(tensor)
    return copy


def adopt(model: onnx.ModelProto, inferred: onnx.ModelProto) -> bool:
    """Add the shapes of the main graph's tensors in `inferred` to `model`; return whether any shape is new.

    A dimension of `model` keeps its size, and keeps a name that an axis of the model's inputs has. Any other dimension
    of `model` takes the size or the name that the dimension has in `inferred`, where `inferred` is more precise.
    """
    computed = {name for node in model.graph.node for name in node.output if name}
    outputs = {value.name: value for value in model.graph.output}
    axes = {dim.dim_param for value in model.graph.input for dim in _dims(value) if dim.dim_param}
    described = {value.name: value for value in model.graph.value_info}
    changed = False
    for value in [*inferred.graph.value_info, *inferred.graph.output]:
        if value.name not in computed or not _typed(value):
            continue
        if value.name in outputs:
            changed |= _refine(outputs[value.name], value, axes)
        elif value.name in described:
            changed |= _refine(described[value.name], value, axes)
        else:
            described[value.name] = model.graph.value_info.add()
            described[value.name].CopyFrom(value)
            changed = True
    return changed


def known(model: onnx.ModelProto) -> float:
    """Return the share of tensors in the main graph that have a size or a name for every dimension, from 0 to 1."""
    computed = {name for node in model.graph.node for name in node.output if name}
    described = {
        value.name
        for value in [*model.graph.value_info, *model.graph.output]
        if _typed(value) and all(dim.HasField("dim_value") or dim.dim_param for dim in _dims(value))
    }
    constants = {name for node in model.graph.node if node.op_type == "Constant" for name in node.output}
    return round(len((described | constants) & computed) / len(computed), 4) if computed else 1.0


def _refine(value: onnx.ValueInfoProto, better: onnx.ValueInfoProto, axes: set[str]) -> bool:
    """Fill the dimensions of `value` that have no size with sizes and names of `better`; return whether any changed."""
    if not value.type.HasField("tensor_type"):
        return False
    mine, theirs = value.type.tensor_type, better.type.tensor_type
    if mine.elem_type and mine.elem_type != theirs.elem_type:
        return False  # one of the two types is wrong, and the model's own type has run so far
    before = value.SerializeToString()
    if not mine.HasField("shape"):
        mine.CopyFrom(theirs)
    elif len(mine.shape.dim) == len(theirs.shape.dim):
        for dim, other in zip(mine.shape.dim, theirs.shape.dim, strict=True):
            if dim.HasField("dim_value") or dim.dim_param in axes:
                continue
            if other.HasField("dim_value") or other.dim_param in axes or (other.dim_param and not dim.dim_param):
                dim.CopyFrom(other)
    return bool(before != value.SerializeToString())


def _typed(value: onnx.ValueInfoProto) -> bool:
    """Whether the model states a tensor's type and number of dimensions."""
    tensor = value.type.tensor_type
    return bool(value.type.HasField("tensor_type") and tensor.elem_type and tensor.HasField("shape"))


def _dims(value: onnx.ValueInfoProto) -> list[onnx.TensorShapeProto.Dimension]:
    return list(value.type.tensor_type.shape.dim)
