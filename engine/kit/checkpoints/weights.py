"""Weights: whether a model's files are complete, and its number of parameters, read from the headers of the files."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from engine.errors import StepError
from engine.kit.checkpoints import json_files, model_files

if TYPE_CHECKING:
    import numpy as np

_POINTER = b"version https://git-lfs.github.com/spec"
_FLOATS = {"F16": "<f2", "F32": "<f4", "F64": "<f8"}
"""The floats of safetensors files -> numpy's names of them."""
_POINTER_LIMIT = 1024
"""The number of bytes below which the size of every git-lfs pointer file lies, by the specification of git-lfs."""


def check(directory: Path, names: Sequence[str]) -> None:
    """Raise StepError where a model file is a git-lfs pointer, or where a safetensors file is cut off or missing."""
    for name in names:
        refuse_pointer(directory / name)
    if model_files.INDEX in names:
        shards = sorted(set(json_files.weight_map(directory / model_files.INDEX).values()))
        if missing := [name for name in shards if not (directory / name).is_file()]:
            raise StepError(
                "parts of the weights are missing",
                [f"{model_files.INDEX} names {len(shards)} files", f"missing: {', '.join(missing[:6])}"],
                "a download that was not finished? fetch the model again",
            )
    for name in names:
        if name.endswith(".safetensors"):
            header(directory / name)


def complete(directory: Path, *, allowed: model_files.Weights) -> list[str]:
    """Return the files that decide what the model in a directory computes; none of them is missing or broken.

    `allowed` is the value of `model.weights` in the recipe. Raises StepError.
    """
    names, _ = model_files.listing(directory)
    model_files.refuse_incomplete(names, weights=allowed, where=str(directory))
    chosen = model_files.of_model(names)
    check(directory, chosen)
    return chosen


def parameters(directory: Path, names: Sequence[str]) -> int:
    """Return the number of parameters in the safetensors files among `names`."""
    headers = (header(directory / name) for name in names if name.endswith(".safetensors"))
    return sum(math.prod(tensor["shape"]) for tensors in headers for tensor in tensors.values())


def refuse_pointer(path: Path) -> None:
    """Raise StepError where a file is a pointer of git-lfs instead of the model file's content."""
    if path.stat().st_size < _POINTER_LIMIT and path.read_bytes().startswith(_POINTER):
        raise StepError(
            f"{path.name} is a git-lfs pointer, not the file itself",
            [f"{path.stat().st_size} bytes that start with 'version https://git-lfs.github.com/spec'"],
            "run `git lfs pull` in the model's repository",
        )


def header(path: Path) -> dict[str, Any]:
    """Return the tensors that a safetensors file declares: name -> {"dtype", "shape", "data_offsets"}.

    A safetensors file consists of 8 bytes with the header's length (little endian), the header as JSON, and the data;
    `data_offsets` count from the end of the header (the format's specification). Raises StepError where the header is
    not readable, or the file's size is not the size that the header states.
    """
    size = path.stat().st_size
    with path.open("rb") as file:
        length = int.from_bytes(file.read(8), "little")
        if size < 8 or length > size - 8:  # noqa: PLR2004 - the 8 bytes of the length
            raise _broken(path, f"{size} bytes are less than its header's length says")
        try:
            tensors = json.loads(file.read(length))
            tensors.pop("__metadata__", None)
            end = max((tensor["data_offsets"][1] for tensor in tensors.values()), default=0)
        except (ValueError, TypeError, KeyError, IndexError, AttributeError, RecursionError) as error:
            raise _broken(path, f"its header is not readable: {type(error).__name__}: {error}") from None
    if end + length + 8 != size:
        raise _broken(path, f"{size} bytes, but its header speaks of {end + length + 8}")
    return dict(tensors)


def arrays(path: Path) -> dict[str, np.ndarray]:
    """Return the tensors of a small safetensors file as float32. Raises StepError for a tensor of other numbers."""
    import numpy as np

    content = path.read_bytes()
    start = 8 + int.from_bytes(content[:8], "little")
    tensors = {}
    for name, tensor in header(path).items():
        first, end = tensor["data_offsets"]
        raw, kind = content[start + first : start + end], tensor["dtype"]
        if kind == "BF16":  # the upper half of a float32
            numbers = (np.frombuffer(raw, "<u2").astype(np.uint32) << 16).view(np.float32)
        elif kind in _FLOATS:
            numbers = np.frombuffer(raw, _FLOATS[kind]).astype(np.float32)
        else:
            raise StepError(
                f"{name} in {path.parent.name}/{path.name} is {kind}, not a float", hint="save it as float32"
            )
        tensors[name] = numbers.reshape(tensor["shape"])
    return tensors


def _broken(path: Path, fact: str) -> StepError:
    return StepError(
        f"{path.name} is cut off or no safetensors file", [fact], "a download that was not finished? fetch it again"
    )
