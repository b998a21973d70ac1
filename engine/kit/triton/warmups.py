"""Warm-up data: files of bytes that a recipe names, under the names that they have in a package."""

# Source: `ModelWarmup.Input.input_data_file` in Triton's model_config.proto: a file in the model's folder `warmup` that
# holds one row, as it lies in memory; the server repeats it for each row of the batch.

from __future__ import annotations

from collections.abc import Iterator, Mapping
from math import prod
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Any

from engine.errors import StepError
from engine.store.copying import copy

if TYPE_CHECKING:
    from engine.recipe.schema import Recipe

_FOLDER, _FILE = "warmup", "input_data_file"
_BYTES = {
    "TYPE_BOOL": 1, "TYPE_FP16": 2, "TYPE_BF16": 2, "TYPE_FP32": 4, "TYPE_FP64": 8,
    **{f"TYPE_{sign}INT{bits}": bits // 8 for sign in ("", "U") for bits in (8, 16, 32, 64)},
}  # fmt: skip


def names(recipe: Recipe) -> dict[str, str]:
    """Return the files that warm-ups of a recipe name, by their URIs, with the name that each has in the package."""
    said = recipe.package.triton
    found: dict[str, str] = {}
    for overrides in (said.model_extra or {}, *said.models.values()):
        for given in _inputs(overrides):
            if _FILE in given and given[_FILE] not in found:
                own = PurePosixPath(given[_FILE].removeprefix("file:"))
                taken = found.values()
                apart = f"{own.stem}-{len(found)}{own.suffix}"
                found[given[_FILE]] = own.name if own.name not in taken else apart
    return found


def renamed(overrides: Mapping[str, Any], called: Mapping[str, str]) -> Mapping[str, Any]:
    """Return overrides whose warm-ups name files as the package calls them."""
    return _renamed(overrides, called) if any(_FILE in given for given in _inputs(overrides)) else overrides


def _renamed(value: Any, called: Mapping[str, str]) -> Any:
    if isinstance(value, Mapping):
        return {
            key: called.get(inner, inner) if key == _FILE else _renamed(inner, called) for key, inner in value.items()
        }
    return [_renamed(item, called) for item in value] if isinstance(value, list | tuple) else value


def add(folder: Path, config: Any, files: Mapping[str, Path] | None) -> None:
    """Put the files that a model's warm-ups need into its folder; where none are given, take such warm-ups out.

    A server that only measures is warm by what is measured. Raises StepError for a file that is no row of its input.
    """
    from tritonclient.grpc import model_config_pb2

    kept = [sample for sample in config.model_warmup if files is not None or not _needed(sample)]
    if len(kept) < len(config.model_warmup):
        copies = [type(sample).FromString(sample.SerializeToString()) for sample in kept]
        config.ClearField("model_warmup")
        config.model_warmup.extend(copies)
    for sample in config.model_warmup:
        for name, given in _needed(sample).items():
            place = (files or {})[given.input_data_file]
            _check(place, name, model_config_pb2.DataType.Name(given.data_type), tuple(given.dims))
            (folder / _FOLDER).mkdir(parents=True, exist_ok=True)
            if not (folder / _FOLDER / given.input_data_file).exists():
                copy(place, folder / _FOLDER / given.input_data_file)


def _needed(sample: Any) -> dict[str, Any]:
    return {name: given for name, given in sample.inputs.items() if given.WhichOneof("input_data_type") == _FILE}


def _check(place: Path, name: str, kind: str, dims: tuple[int, ...]) -> None:
    size, found = _BYTES.get(kind, 0) * prod(dims), place.stat().st_size
    if size and found != size:
        raise StepError(
            f"the warm-up's data for {name} has {found:,} bytes, and a row of it takes {size:,}",
            [f"{kind}, dims {list(dims)}"],
            "write one row as it lies in memory: array.tofile(...)",
        )


def _inputs(overrides: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    """Yield what overrides say of each input of each warm-up, whatever else is wrong with them."""
    samples = overrides.get("model_warmup")
    for sample in samples if isinstance(samples, list | tuple) else ():
        inputs = sample.get("inputs") if isinstance(sample, Mapping) else None
        for given in inputs.values() if isinstance(inputs, Mapping) else ():
            if isinstance(given, Mapping):
                yield given
