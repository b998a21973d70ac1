"""ONNX files: load, save and link a model directory, and list the inputs, outputs and nodes of a model."""

from __future__ import annotations

import re
from collections.abc import Container, Iterator, MutableSequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from engine import digest
from engine.errors import StepError
from engine.kit.onnx import external_data, large_files, mapped_weights
from engine.runtimes import axes
from engine.store.disk import link_or_copy
from engine.text import reasons

if TYPE_CHECKING:
    import onnx

TOOLS = ("ml_dtypes", "numpy", "onnx", "protobuf")
"""The distributions that read ONNX files: protobuf reads the message; numpy and ml_dtypes hold weights."""
WEIGHTS_NEED_NO_INPUT = 4
"""The first IR version in which a graph may store an initializer without listing the initializer as an input."""
MODEL = "model.onnx"
DATA = "model.onnx.data"

INLINE_LIMIT = 128 << 20
"""The number of bytes of weights up to which a model is one file; above, its weights lie in a file of their own.

Programs map a file of weights into memory. They read an ONNX file, a protobuf message, as a whole, and hold it in
memory several times (ADR 28).
"""

_ABSOLUTE_PATH = re.compile(r"(^|[\s\"'=:(\[])(/[^\s/\"']+/|[A-Za-z]:\\)")


@dataclass(frozen=True)
class Input:
    """An input or output of a model: numpy's name of its type, and an extent or an axis name per dimension.

    A dynamic dimension is called `<input>_<index>` if the model gives it no name, or a name such as `?` that means any
    size. `ranked` is False, and `shape` empty, where the model does not state the number of dimensions of the input or
    output.
    """

    name: str
    dtype: str
    shape: tuple[int | str, ...]
    ranked: bool = True


def load(directory: Path) -> onnx.ModelProto:
    """Return `directory/model.onnx` with its external data in memory. Raises StepError as `load_mapped` does."""
    model = load_mapped(directory)
    for tensor in tensors(model):
        mapped_weights.load(tensor)
    return model


def load_mapped(directory: Path) -> onnx.ModelProto:
    """Return `directory/model.onnx` with its large weights mapped: their numbers are read where code uses them.

    `mapped_weights.array` returns the numbers of a tensor. The directory must stay while the model is in use. Raises
    StepError where the file is missing, is no ONNX, or lacks its external data.
    """
    model = load_graph(directory)
    external_data.attach(tensors(model), directory / MODEL)
    for tensor in tensors(model):
        place = mapped_weights.extent(tensor)
        if place is not None and place.length < mapped_weights.LEAST:
            mapped_weights.load(tensor)
    return model


def load_graph(directory: Path) -> onnx.ModelProto:
    """Return `directory/model.onnx` without reading its external data, or the weights of a large file.

    Raises StepError where the file is missing, and as `read` does.
    """
    if not (directory / MODEL).is_file():
        names = sorted(path.name for path in directory.iterdir())[:12] if directory.is_dir() else ["nothing"]
        raise StepError(f"There is no {MODEL} in the model's directory", [f"it holds: {', '.join(names)}"])
    return read(directory / MODEL)


def read(path: Path) -> onnx.ModelProto:
    """Return the model in a file without reading its external data, or the weights of a large file.

    Raises StepError where the file is no ONNX, or names a file of external data by an absolute path.
    """
    try:
        model = large_files.parse(path)
    except Exception as error:  # protobuf's DecodeError, by way of whichever implementation is installed
        raise no_model(path, *reasons.facts(error)) from error
    if not model.HasField("graph"):
        raise no_model(path, "it holds no graph")
    for tensor in tensors(model):
        place = mapped_weights.extent(tensor)
        if place is not None and place.path != path.resolve():
            raise external_data.outside(path, str(place.path))
    return model


def no_model(path: Path, *facts: str) -> StepError:
    """Return the error for a file of another format."""
    return StepError(f"{path.name} is no ONNX model", facts, "a cut-off download or another format? try onnx.checker")


def save(model: onnx.ModelProto, directory: Path, *, threshold: int = INLINE_LIMIT) -> None:
    """Write the model as `directory/model.onnx`; the same model gives the same bytes.

    If all weights together have more than `threshold` bytes, large weights go to `model.onnx.data`, mapped ones from
    file to file; `model` then lacks these weights and must be loaded again. Files of external data that the model
    names already are not touched. Exporters leave absolute paths in metadata and documentation; entries with absolute
    paths are removed.
    """
    directory.mkdir(parents=True, exist_ok=True)
    if weight_bytes(model) > threshold:
        external_data.move(tensors(model), directory / DATA)
    _strip_paths(model)
    for tensor in tensors(model):
        mapped_weights.load(tensor)
    _write(model, directory)


def save_linked(model: onnx.ModelProto, directory: Path) -> None:
    """Write the model for a short time as `directory/model.onnx`; `model` stays as it is.

    The mapped weights of graphs are not copied where all of them begin at a page of their file: these files are
    hard-linked into the directory.
    """
    copy = copied(model)
    stored = [tensor for graph in graphs(copy.graph) for tensor in graph.initializer]
    places = [(tensor, place) for tensor in stored if (place := mapped_weights.extent(tensor))]
    if not places or any(place.offset % mapped_weights.ALIGNMENT for _, place in places):
        save(copy, directory)
        return
    directory.mkdir(parents=True, exist_ok=True)
    names: dict[Path, str] = {}
    for tensor, place in places:
        name = names.setdefault(place.path, f"weights-{len(names)}")
        mapped_weights.refer(tensor, name, offset=place.offset, length=place.length)
    for tensor in tensors(copy):  # constants inside nodes
        mapped_weights.load(tensor)
    for path, name in names.items():
        link_file(path, directory / name)
    _write(copy, directory)


def copied(model: onnx.ModelProto) -> onnx.ModelProto:
    """Return a copy of a model, its weights included; mapped weights stay in their files."""
    import onnx

    copy = onnx.ModelProto()
    copy.CopyFrom(model)
    return copy


def link(source: Path, out: Path) -> None:
    """Hard-link every file of a model directory into `out`; copy where the file system cannot link."""
    for name in digest.walk(source):
        link_file(source / name, out / name)


def link_file(source: Path, target: Path) -> None:
    """Hard-link one file, or copy it where the file system cannot link."""
    target.parent.mkdir(parents=True, exist_ok=True)
    link_or_copy(source, target)


def inputs(model: onnx.ModelProto) -> dict[str, Input]:
    """Return the model's inputs by name, in the graph's order, without inputs whose default value is an initializer."""
    defaults = {tensor.name for tensor in model.graph.initializer}
    defaults |= {tensor.values.name for tensor in model.graph.sparse_initializer}
    return {value.name: described(value) for value in model.graph.input if value.name not in defaults}


def optional_inputs(model: onnx.ModelProto) -> dict[str, Input]:
    """Return the inputs with a default value, by name; none where a file lists its weights, matrices among them."""
    stored = {tensor.name: len(tensor.dims) for tensor in model.graph.initializer}
    listed = [value for value in model.graph.input if value.name in stored]
    if model.ir_version < WEIGHTS_NEED_NO_INPUT or any(stored[value.name] > 1 for value in listed):
        return {}
    return {value.name: described(value) for value in listed}


def outputs(model: onnx.ModelProto) -> dict[str, Input]:
    """Return the outputs of the model by name, in the order of the graph."""
    return {value.name: described(value) for value in model.graph.output}


def graphs(graph: onnx.GraphProto) -> Iterator[onnx.GraphProto]:
    """Yield the graph and every graph inside it: the bodies of its If, Loop and Scan nodes."""
    yield graph
    for node in graph.node:
        yield from bodies(node)


def bodies(node: onnx.NodeProto) -> Iterator[onnx.GraphProto]:
    """Yield the graphs that a node holds, and every graph inside them."""
    for attribute in node.attribute:
        if attribute.HasField("g"):
            yield from graphs(attribute.g)
        for graph in attribute.graphs:
            yield from graphs(graph)


def nodes(model: onnx.ModelProto) -> Iterator[onnx.NodeProto]:
    """Yield every node of the model, also the nodes of bodies and of local functions."""
    for graph in graphs(model.graph):
        yield from graph.node
    for function in model.functions:
        for node in function.node:
            yield node
            for body in bodies(node):
                yield from body.node


def tensors(model: onnx.ModelProto) -> Iterator[onnx.TensorProto]:
    """Yield every stored tensor: initializers and the constants inside nodes."""
    for graph in graphs(model.graph):
        yield from graph.initializer
    for node in nodes(model):
        for attribute in node.attribute:
            if attribute.HasField("t"):
                yield attribute.t
            yield from attribute.tensors


def initializers(graph: onnx.GraphProto) -> dict[str, onnx.TensorProto]:
    """Return the stored tensors of a graph by name."""
    return {tensor.name: tensor for tensor in graph.initializer}


def producers(graph: onnx.GraphProto) -> dict[str, onnx.NodeProto]:
    """Return the node of a graph that produces each tensor."""
    return {name: node for node in graph.node for name in node.output}


def remove_named(values: MutableSequence[Any], names: Container[str]) -> None:
    """Remove the values of a repeated field that have one of the names; all others stay as they are."""
    for index in reversed(range(len(values))):
        if values[index].name in names:
            del values[index]


def weight_bytes(model: onnx.ModelProto) -> int:
    """Return the number of bytes of a model's stored tensors, in memory or mapped; other external data do not count."""
    places = ((tensor, mapped_weights.extent(tensor)) for tensor in tensors(model))
    return sum(tensor.ByteSize() + (0 if place is None else place.length) for tensor, place in places)


def files(model: onnx.ModelProto) -> tuple[str, ...]:
    """Return the names of all files of a model: its graph and its external data."""
    return (MODEL, *data_files(model))


def size(directory: Path, model: onnx.ModelProto) -> int:
    """Return the bytes of all files of a model in a directory."""
    return sum((directory / name).stat().st_size for name in files(model))


def folder_size(folder: Path) -> int:
    """Return the bytes of all files below a folder."""
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())


def data_files(model: onnx.ModelProto) -> list[str]:
    """Return the names of the external files with tensors of the model, relative to the model's directory."""
    return sorted({name for tensor in tensors(model) if (name := external_data.location(tensor)) is not None})


def described(value: onnx.ValueInfoProto) -> Input:
    """Return the name, type and shape of an input or output. Raises StepError for a value that is no tensor."""
    from onnx import helper

    kind = _kind(value.type)
    if kind != "tensor":
        raise StepError(
            f"{value.name} is no tensor but {'an' if kind == 'optional' else 'a'} {kind}: that is not supported",
            hint="export it with tensors only: from scikit-learn, convert_sklearn(..., options={'zipmap': False})",
        )
    tensor = value.type.tensor_type
    dtype = helper.tensor_dtype_to_np_dtype(tensor.elem_type).name
    if not tensor.HasField("shape"):
        return Input(value.name, dtype, (), ranked=False)
    shape = (
        f"{value.name}_{index}" if is_nameless(dim) else dim.dim_param or dim.dim_value
        for index, dim in enumerate(tensor.shape.dim)
    )
    return Input(value.name, dtype, tuple(shape))


def _kind(value: onnx.TypeProto) -> str:
    """Return the kind of a value in words: "tensor", "value of unknown type", "sequence of maps" and the like."""
    field = value.WhichOneof("value") or "value of unknown type"
    if field == "sequence_type":
        return f"sequence of {_kind(value.sequence_type.elem_type)}s"
    return field.removesuffix("_type").replace("_", " ")


def is_nameless(dim: onnx.TensorShapeProto.Dimension) -> bool:
    """Whether a dimension has neither a size nor a name; a negative size, and the name `?`, mean any size."""
    return dim.dim_value < 0 if dim.HasField("dim_value") else axes.names_nothing(dim.dim_param)


def _write(model: onnx.ModelProto, directory: Path) -> None:
    """Write a model that holds its weights, or names their files; a link to another file is replaced."""
    (directory / MODEL).unlink(missing_ok=True)
    (directory / MODEL).write_bytes(model.SerializeToString(deterministic=True))


def _strip_paths(model: onnx.ModelProto) -> None:
    """Remove metadata with absolute paths, such as exporters' stack traces, because paths differ between machines."""
    everything: list[onnx.ModelProto | onnx.GraphProto | onnx.NodeProto | onnx.FunctionProto] = [model]
    everything += graphs(model.graph)
    everything += nodes(model)
    everything += model.functions
    for part in everything:
        for entry in [each for each in part.metadata_props if _ABSOLUTE_PATH.search(each.value)]:
            part.metadata_props.remove(entry)
        if _ABSOLUTE_PATH.search(part.doc_string):
            part.ClearField("doc_string")
