"""External data: the weights of an ONNX model that lie in files beside it."""

from __future__ import annotations

import itertools
from collections.abc import Iterable
from pathlib import Path, PureWindowsPath
from typing import TYPE_CHECKING

from engine.errors import StepError
from engine.kit.checkpoints import weights
from engine.kit.onnx import mapped_weights
from engine.kit.onnx.mapped_weights import ALIGNMENT, stored_bytes

if TYPE_CHECKING:
    import onnx

_ALONE = 1 << 20
"""The least number of bytes of a tensor with a file of its own."""
_FILES = 512
"""The largest number of files that the weights of a model have, about."""
_INLINE_BYTES = 1024  # smaller tensors stay in the model: shapes and scalars are readable without the data file


def complete(tensors: Iterable[onnx.TensorProto], model: Path) -> list[str]:
    """Return the data files of the model in a file, relative to its directory.

    Raises StepError where one lies outside of the model's directory, is missing, or is shorter than its tensors need.
    """
    ends: dict[str, int] = {}
    for tensor in tensors:
        if (name := location(tensor)) is not None:
            begin, length = (_whole(tensor, key) for key in ("offset", "length"))
            ends[name] = max(ends.get(name, 0), begin + max(length, stored_bytes(tensor)))
    for name, end in sorted(ends.items()):
        _refuse_broken(model, name, end)
    return sorted(ends)


def _refuse_broken(model: Path, name: str, end: int) -> None:
    """Raise StepError for a data file of a model that is outside of its directory, missing, or below `end` bytes."""
    windows = PureWindowsPath(name)
    if not name or windows.is_absolute() or windows.drive or windows.root or ".." in windows.parts or "\0" in name:
        raise outside(model, name)
    if windows.as_posix() == "model.onnx":
        raise StepError(
            f"{model.name} keeps its external data in a file called model.onnx",
            ["that is the name that the model itself gets in a package"],
            "save the model with another name for the data: onnx.save_model(..., location='model.onnx.data')",
        )
    file = model.parent / name
    if not file.is_file():
        raise StepError(
            f"the external data of {model.name} is missing: {name}",
            [f"looked for {file}"],
            "put the file beside the model, under exactly that name",
        )
    weights.refuse_pointer(file)
    if file.stat().st_size < end:
        raise StepError(
            f"the external data of {model.name} is cut off: {name}",
            [f"{file.stat().st_size} bytes, but the model reads up to byte {end}"],
            "if the download stopped early, fetch the file again",
        )


def outside(model: Path, name: str) -> StepError:
    """Return the error for a model with a data file outside of its directory."""
    return StepError(
        f"{model.name} wants to read a file outside its own directory",
        [f"location of its external data: {name!r}"],
        "save the model with its external data beside it: onnx.save_model(..., location='model.onnx.data')",
    )


def attach(tensors: Iterable[onnx.TensorProto], model: Path) -> None:
    """Turn the tensors with external data of the model in a file into mapped tensors.

    Raises StepError as `complete` does, and for a link that leads out of the model's directory.
    """
    outer = [(tensor, name) for tensor in tensors if (name := location(tensor)) is not None]
    complete((tensor for tensor, _ in outer), model)
    for tensor, name in outer:
        path = (model.parent / name).resolve()
        if not path.is_relative_to(model.parent.resolve()):
            raise outside(model, name)
        mapped_weights.refer(tensor, path, offset=_whole(tensor, "offset"), length=stored_bytes(tensor))


def move(tensors: Iterable[onnx.TensorProto], path: Path) -> None:
    """Write every large tensor to the file `path`, in order, and leave a reference to that file in the tensor.

    The largest tensors have files of their own, `path` with a number added: a store keeps files of equal content once,
    so that a step which changes some tensors adds only these. The numbers of a mapped tensor are copied from file to
    file.
    """
    import onnx_ir as ir

    for tensor in (moved := [tensor for tensor in tensors if location(tensor) is None]):
        _make_raw(tensor)
    sizes = [stored_bytes(tensor) for tensor in moved]
    alone = _least_alone(sum(sizes))
    numbers = itertools.count(1)
    files: dict[str, list[onnx.TensorProto]] = {}
    for tensor, size in zip(moved, sizes, strict=True):
        if size < _INLINE_BYTES or tensor.data_type == tensor.STRING:
            mapped_weights.load(tensor)
        else:
            name = path.name if size < alone else f"{path.name}-{next(numbers):03}"
            files.setdefault(name, []).append(tensor)
    for name, content in files.items():
        places = ir.external_data.convert_tensors_to_external(
            [ir.from_proto(tensor) for tensor in content], path.parent, name, alignment=ALIGNMENT, align_threshold=0
        )
        for tensor, place in zip(content, places, strict=True):
            mapped_weights.refer(tensor, name, offset=place.offset or 0, length=place.nbytes)


def _least_alone(total: int) -> int:
    """Return the number of bytes from which a tensor of a model with `total` bytes has a file of its own.

    The number is a power of two, so that it is the same before and after a step that changes the total a little.
    """
    return int(max(_ALONE, 1 << (total // _FILES).bit_length()))


def location(tensor: onnx.TensorProto) -> str | None:
    """Return the file with a tensor's data, relative to the model's directory.

    None where the model holds the data, and for a mapped tensor.
    """
    if tensor.data_location != tensor.EXTERNAL or mapped_weights.extent(tensor) is not None:
        return None
    return next((entry.value for entry in tensor.external_data if entry.key == "location"), "")


def _whole(tensor: onnx.TensorProto, key: str) -> int:
    """Return a number of a tensor's external data; 0 where it is not stated, or is no number."""
    text = next((entry.value for entry in tensor.external_data if entry.key == key), "")
    return int(text) if text.isdecimal() else 0


def _make_raw(tensor: onnx.TensorProto) -> None:
    """Turn typed data (float_data, int64_data, ...) into raw bytes, because only raw bytes can be external."""
    from onnx import numpy_helper

    external = tensor.data_location == tensor.EXTERNAL
    if not (external or tensor.HasField("raw_data") or tensor.data_type == tensor.STRING):
        tensor.CopyFrom(numpy_helper.from_array(numpy_helper.to_array(tensor), tensor.name))
