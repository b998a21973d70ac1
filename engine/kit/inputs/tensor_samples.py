"""Samples that are tensors: an .npz with one array per input -> a model's inputs."""

from __future__ import annotations

import zipfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from engine.errors import StepError
from engine.kit.inputs.cases import Case
from engine.kit.onnx.onnx_files import Input

if TYPE_CHECKING:
    import numpy as np

LABEL = "label"
_NUMBERS = frozenset({"bool", "float16", "float32", "float64"}) | {
    f"{sign}int{bits}" for sign in ("", "u") for bits in (8, 16, 32, 64)
}


def read(path: Path, wanted: Mapping[str, Input]) -> list[Case]:
    """Return the rows of an `.npz` file: one array per input, whose first axis counts the samples.

    An array has the input's own rank, then its rows are the rows of batches; or one more, then each of its rows is a
    whole input (for models whose first axis is no batch). An array `label` may hold expected classes.
    Raises StepError for an array that is missing, or of another type or shape than the model takes.
    """
    arrays = _arrays(path)
    for name, value in wanted.items():
        if name not in arrays:
            raise StepError(
                f"{path.name} has no array for the input {name}",
                [
                    f"it holds: {', '.join(arrays) or 'nothing'}",
                    *(f"the model takes {describe(v)}" for v in wanted.values()),
                ],
            )
        _refuse_misfit(path, value, arrays[name])
    counts = {name: len(arrays[name]) for name in (*wanted, LABEL) if name in arrays}
    if len(set(counts.values())) > 1 or not all(counts.values()):
        facts = [f"{name}: {count} rows" for name, count in counts.items()]
        raise StepError(f"the arrays in {path.name} must have the same number of rows, at least one", facts)
    if LABEL in arrays and LABEL not in wanted:
        arrays[LABEL] = _labels(path, arrays[LABEL])
    return list(_rows(path, wanted, arrays, next(iter(counts.values()))))


def refuse_unusual(value: Input) -> None:
    """Raise StepError for an input that numpy has no numbers for: text, bfloat16, 8-bit floats."""
    if value.dtype not in _NUMBERS:
        kind = "text" if value.dtype in {"object", "str"} else value.dtype
        raise StepError(f"the model's input {value.name} is {kind}: that is not supported yet")


def describe(value: Input) -> str:
    """Return an input's name, type and shape for a reader."""
    return f"{value.name}: {value.dtype} {_shown(value.shape)}"


def _arrays(path: Path) -> dict[str, np.ndarray]:
    import numpy as np

    try:
        with np.load(path, allow_pickle=False) as file:
            return {name: file[name] for name in file.files}
    except (OSError, ValueError, zipfile.BadZipFile, AttributeError) as error:
        raise StepError(
            f"{path.name} cannot be read",
            [str(error)],
            "save it with numpy.savez(path, **arrays), without pickled objects",
        ) from error


def _refuse_misfit(path: Path, value: Input, array: np.ndarray) -> None:
    import numpy as np

    refuse_unusual(value)
    facts = [f"in the file: {array.dtype} {list(array.shape)}", f"the model takes {describe(value)}"]
    if not np.can_cast(array.dtype, value.dtype, "same_kind"):
        raise StepError(f"the array {value.name} in {path.name} has the wrong type", facts)
    if not value.ranked:
        return
    rank = len(value.shape)
    if array.ndim not in (rank, rank + 1) or array.ndim == 0:
        raise StepError(
            f"the array {value.name} in {path.name} has the wrong number of axes",
            facts,
            "its first axis counts the samples",
        )
    own = array.shape[1:]
    sizes = value.shape[1:] if array.ndim == rank else value.shape
    if any(isinstance(size, int) and size != given for size, given in zip(sizes, own, strict=True)):
        raise StepError(f"the array {value.name} in {path.name} has the wrong shape", facts)


def _labels(path: Path, labels: np.ndarray) -> np.ndarray:
    if labels.dtype.kind not in "iu" or labels.size != len(labels):
        raise StepError(
            f"the array {LABEL} in {path.name} does not hold one whole number a row",
            [f"in the file: {labels.dtype} {list(labels.shape)}"],
            "give the number of the expected class of each row",
        )
    return labels.reshape(-1)


def _rows(path: Path, wanted: Mapping[str, Input], arrays: Mapping[str, np.ndarray], count: int) -> Iterator[Case]:
    whole = {name for name, value in wanted.items() if value.ranked and arrays[name].ndim > len(value.shape)}
    fixed = {value.shape[0] for name, value in wanted.items() if name not in whole and value.shape}
    step = next((size for size in fixed if isinstance(size, int)), 1) if not whole else 1
    if count < step:
        raise StepError(f"{path.name} has {count} samples, and the model takes {step} at once")
    labelled = LABEL in arrays and LABEL not in wanted
    for start in range(0, count - step + 1, step):
        inputs = {name: arrays[name][start] if name in whole else arrays[name][start : start + step] for name in wanted}
        cast = {name: tensor.astype(wanted[name].dtype) for name, tensor in inputs.items()}
        label = int(arrays[LABEL][start]) if labelled and step == 1 else None
        yield Case(f"row {start}", "", "tensors", cast, {}, label)


def _shown(shape: tuple[Any, ...]) -> str:
    return "[" + ", ".join(str(size) for size in shape) + "]"
