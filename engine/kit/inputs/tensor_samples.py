"""Tensor samples: an .npz file with one array per input becomes a model's inputs."""

from __future__ import annotations

import math
import zipfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from engine.errors import StepError
from engine.kit.inputs.cases import LABEL, Case
from engine.kit.onnx import onnx_source
from engine.kit.onnx.onnx_files import Input
from engine.text import reasons

if TYPE_CHECKING:
    import numpy as np

_UNREADABLE = (OSError, ValueError, zipfile.BadZipFile, AttributeError, EOFError, KeyError)


def read(path: Path, specs: Mapping[str, Input]) -> list[Case]:
    """Return the samples of an `.npz` file as cases.

    The file has one array for each input, and an array's first axis counts the samples. Where an array has as many axes
    as the input, each row of the array becomes a row of a batch. Where an array has one axis more than the input, each
    row of the array is a whole input. A model whose first axis is no batch needs arrays with one axis more than the
    input. A single number is the input of all samples. The file may also hold an array `label` with the expected class
    of each sample. Raises StepError for an array that is missing, or that has another type or shape than the input.
    """
    arrays: dict[str, np.ndarray] = _each(path, lambda archive, name: archive[name])
    refuse_unfit(path, specs, arrays)
    if LABEL in arrays and LABEL not in specs:
        arrays[LABEL] = arrays[LABEL].reshape(-1)
    count = next((len(arrays[name]) for name in specs if arrays[name].ndim), 1)
    return list(_rows(path, specs, arrays, count))


def refuse_unfit(path: Path, specs: Mapping[str, Input], arrays: Mapping[str, np.ndarray | ArrayHeader]) -> None:
    """Raise StepError where the arrays of a file, or their headers, do not suit the inputs of the model."""
    for name, spec in specs.items():
        if name not in arrays:
            raise StepError(
                f"{path.name} has no array for the input {name}",
                [
                    f"it holds: {', '.join(arrays) or 'nothing'}",
                    *(f"the model takes {describe(spec)}" for spec in specs.values()),
                ],
                f"save an array for each input, under the input's name: numpy.savez(path, **{{{name!r}: array, ...}})",
            )
        _refuse_misfit(path, spec, arrays[name])
    _refuse_counts(path, specs, {name: arrays[name].shape for name in (*specs, LABEL) if name in arrays})
    if LABEL in arrays and LABEL not in specs:
        _refuse_labels(path, arrays[LABEL])


def _refuse_counts(path: Path, specs: Mapping[str, Input], shapes: Mapping[str, tuple[int, ...]]) -> None:
    """Raise StepError where arrays have different numbers of rows; a single number counts for all rows."""
    counts = {name: shape[0] for name, shape in shapes.items() if shape}
    if len(set(counts.values())) <= 1 and all(counts.values()):
        return
    fixed = [name for name, spec in specs.items() if _starts_fixed(spec) and len(shapes[name]) == len(spec.shape)]
    hint = ""
    if fixed and len(fixed) < len(specs):
        rows = next((count for name, count in counts.items() if name not in fixed), 1)
        whole = " x ".join(map(str, (rows, *shapes[fixed[0]])))
        hint = f"the first axis of {fixed[0]} is no batch: give one whole input for each sample, here {whole}"
    numbers = [name for name, spec in specs.items() if spec.ranked and not spec.shape and counts.get(name) == 1]
    if numbers:
        hint = f"give {numbers[0]} as a number without an axis, for all samples, or as a number for each sample"
    facts = [f"{name}: {count} rows" for name, count in counts.items()]
    raise StepError(f"the arrays in {path.name} must have the same number of rows, at least one", facts, hint)


def _starts_fixed(spec: Input) -> bool:
    return bool(spec.shape) and isinstance(spec.shape[0], int)


def headers(path: Path) -> dict[str, ArrayHeader]:
    """Return the type and the shape of each array in an `.npz` file, without reading the arrays. Raises StepError."""
    return _each(path, _header)


@dataclass(frozen=True)
class ArrayHeader:
    """The type and the shape of an array in an `.npz` file."""

    dtype: np.dtype[Any]
    shape: tuple[int, ...]

    @property
    def ndim(self) -> int:
        """The number of axes."""
        return len(self.shape)


def _header(archive: Any, name: str) -> ArrayHeader:
    """Return the header of an array in an opened `.npz` file; for a rare version of the format the array is read."""
    from numpy.lib import format as npy

    readers = {(1, 0): npy.read_array_header_1_0, (2, 0): npy.read_array_header_2_0}
    with archive.zip.open(f"{name}.npy") as file:
        read_header = readers.get(npy.read_magic(file))
        if read_header is not None:
            shape, _, dtype = read_header(file)
            if not dtype.hasobject:
                return ArrayHeader(dtype, shape)
    array = archive[name]  # numpy refuses pickled objects itself
    return ArrayHeader(array.dtype, array.shape)


def describe(value: Input) -> str:
    """Return an input's name, type and shape as one text, for an error."""
    return f"{value.name}: {value.dtype} {_shown(value.shape)}"


def _shown(shape: Sequence[object]) -> str:
    return f"[{', '.join(map(str, shape))}]"


def _each(path: Path, read: Callable[[Any, str], Any]) -> dict[str, Any]:
    """Return the name of each array in an `.npz` file -> what `read` returns for the opened file and the name.

    Raises StepError, also for a file of a single array, which numpy reads, too.
    """
    import numpy as np

    cause: Exception | None = None
    try:
        file = np.load(path, allow_pickle=False)
        if not isinstance(file, np.ndarray):
            with file:
                members = set(file.zip.namelist())
                return {name: read(file, name) for name in file.files if f"{name}.npy" in members}
        facts = ["the file holds a single array without a name (numpy.save)"]
    except _UNREADABLE as error:
        facts, cause = reasons.facts(error), error
    hint = "save it with numpy.savez(path, **arrays), without pickled objects"
    raise StepError(f"{path.name} cannot be read", facts, hint) from cause


def _refuse_misfit(path: Path, value: Input, array: np.ndarray | ArrayHeader) -> None:
    """Raise StepError for an array whose type or shape is not that of the input."""
    import numpy as np

    onnx_source.refuse_unusual(value)
    facts = [f"in the file: {array.dtype} {list(array.shape)}", f"the model takes {describe(value)}"]
    if not np.can_cast(array.dtype, value.dtype, "same_kind"):
        raise StepError(f"the array {value.name} in {path.name} has the wrong type", facts, f"save it as {value.dtype}")
    if not value.ranked:
        return
    rank = len(value.shape)
    if array.ndim not in (rank, rank + 1):
        raise StepError(
            f"the array {value.name} in {path.name} has the wrong number of axes",
            facts,
            # rows of a batch, or whole inputs for a fixed first axis
            "its first axis counts the samples: give the shape "
            + _shown(("samples", *(value.shape if _starts_fixed(value) else value.shape[1:]))),
        )
    own = array.shape[1:]
    sizes = value.shape[1:] if array.ndim == rank else value.shape
    if any(isinstance(size, int) and size != extent for size, extent in zip(sizes, own, strict=True)):
        raise StepError(f"the array {value.name} in {path.name} has the wrong shape", facts)


def _refuse_labels(path: Path, labels: np.ndarray | ArrayHeader) -> None:
    """Raise StepError where the expected classes are not one whole number for each row."""
    if labels.dtype.kind not in "iu" or not labels.ndim or math.prod(labels.shape) != labels.shape[0]:
        raise StepError(
            f"the array {LABEL} in {path.name} does not hold one whole number a row",
            [f"in the file: {labels.dtype} {list(labels.shape)}"],
            "give the number of the expected class of each row",
        )


def _rows(path: Path, specs: Mapping[str, Input], arrays: Mapping[str, np.ndarray], count: int) -> Iterator[Case]:
    """Yield a case for each row, or for as many rows as a fixed batch axis takes.

    Raises StepError where there are fewer rows than the fixed batch axis takes.
    """
    import numpy as np

    shared = {name for name in specs if arrays[name].ndim == 0}
    whole = {name for name, spec in specs.items() if spec.ranked and arrays[name].ndim > len(spec.shape)}
    fixed = {spec.shape[0] for name, spec in specs.items() if name not in whole and spec.shape}
    stacked = {name for name in whole if specs[name].shape}
    step = next((size for size in fixed if isinstance(size, int)), 1) if not stacked else 1
    if count < step:
        raise StepError(f"{path.name} has {count} samples, and the model takes {step} at once")
    labelled = LABEL in arrays and LABEL not in specs
    for start in range(0, count - step + 1, step):
        rows = slice(start, start + step)
        own = {name: arrays[name][start if name in whole else rows] for name in specs if name not in shared}
        inputs = {name: own.get(name, arrays[name]) for name in specs}
        cast = {name: np.asarray(tensor, dtype=specs[name].dtype) for name, tensor in inputs.items()}
        label = int(arrays[LABEL][start]) if labelled and step == 1 else None
        yield Case(f"row {start}", "", "tensors", cast, {}, label)
