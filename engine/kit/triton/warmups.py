"""Warm-up data: files of a recipe that hold an input of a warm-up, and their names in a package."""

# Source: `ModelWarmup.Input.input_data_file` in Triton's model_config.proto: a file in the model's folder `warmup` that
# holds one row, as it lies in memory. The server repeats the row for the whole batch.

from __future__ import annotations

from collections.abc import Iterator, Mapping
from math import prod
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Any, cast

from engine.errors import StepError
from engine.runtimes.triton_tensors import BYTES
from engine.store.disk import copy

if TYPE_CHECKING:
    from engine.kit.triton.config import Signature
    from engine.recipe.schema import Recipe

_FOLDER, _FILE = "warmup", "input_data_file"
_USUAL_SIZES = {"batch": 1, "texts": 2, "sequence": 16, "height": 224, "width": 224}
"""The sizes of a warm-up on a CPU, where a warm-up with the largest shapes would keep their memory reserved."""
_TAKES_ZEROS = {"input_ids", "attention_mask", "token_type_ids", "images", "pixel_values", "pixel_mask"}
"""The inputs of which zeros are valid values: the first token of the vocabulary, all padding, a grey image."""


def names(recipe: Recipe) -> dict[str, str]:
    """Return the URI of each file that a warm-up of the recipe names -> the name of the file in the package."""
    triton = recipe.package.triton
    by_uri: dict[str, str] = {}
    for overrides in (triton.model_extra or {}, *triton.models.values()):
        for warmup_input in _inputs(overrides):
            uri = warmup_input.get(_FILE)
            if uri is None or uri in by_uri:
                continue
            path = PurePosixPath(uri.removeprefix("file:"))
            is_taken = path.name in by_uri.values()
            by_uri[uri] = f"{path.stem}-{len(by_uri)}{path.suffix}" if is_taken else path.name
    return by_uri


def renamed(overrides: Mapping[str, Any], file_names: Mapping[str, str]) -> Mapping[str, Any]:
    """Return the overrides with the URIs in warm-ups replaced: `file_names` maps a URI to the name in the package."""
    if not any(_FILE in warmup_input for warmup_input in _inputs(overrides)):
        return overrides
    return cast("Mapping[str, Any]", _renamed(overrides, file_names))


def _renamed(value: Any, names: Mapping[str, str]) -> Any:
    if isinstance(value, Mapping):
        return {
            key: names.get(inner, inner) if key == _FILE else _renamed(inner, names) for key, inner in value.items()
        }
    return [_renamed(element, names) for element in value] if isinstance(value, list | tuple) else value


def add_usual(config: Any, signature: Signature, *, largest: Mapping[str, int], on_gpu: bool) -> None:
    """Add one request of zeros to `config`, a model's configuration, so that the first client does not wait.

    ONNX Runtime, OpenVINO and TensorRT reserve memory and choose kernels in the first call. `largest` has the
    greatest sizes of axes, which are the sizes of the warm-up on a GPU: a profile of an engine may take no smaller
    ones. Nothing is added where zeros may be no valid input, or where the size of an axis is not known.
    """
    if not set(signature.inputs) <= _TAKES_ZEROS:
        return
    usual = {axis: min(size, largest.get(axis, size)) for axis, size in _USUAL_SIZES.items()}
    sizes = largest if on_gpu else usual
    shapes = {
        name: [extent if isinstance(extent, int) else sizes.get(extent) for extent in tensor.shape]
        for name, tensor in signature.inputs.items()
    }
    if any(extent is None for shape in shapes.values() for extent in shape):
        return
    batched = config.max_batch_size > 0
    sample = config.model_warmup.add(name="zeros")
    sample.batch_size = min(next(iter(shapes.values()))[0], config.max_batch_size) if batched else 1
    for tensor in config.input:
        warmup_input = sample.inputs[tensor.name]
        warmup_input.data_type = tensor.data_type
        warmup_input.dims.extend(shapes[tensor.name][1:] if batched else shapes[tensor.name])
        warmup_input.zero_data = True


def add(folder: Path, config: Any, files: Mapping[str, Path] | None) -> None:
    """Copy the files that a model's warm-ups read into the model's folder.

    Where `files` is None, the warm-ups that read files are removed from `config`, and no file is copied. The step
    `bench` passes None for `files`, because `bench` warms the server with calls of its own. Raises StepError for a file
    whose size differs from the size of one row of the warm-up's input.
    """
    from tritonclient.grpc import model_config_pb2

    remaining = [sample for sample in config.model_warmup if files is not None or not _needed(sample)]
    if len(remaining) < len(config.model_warmup):
        copies = [type(sample).FromString(sample.SerializeToString()) for sample in remaining]
        config.ClearField("model_warmup")
        config.model_warmup.extend(copies)
    for sample in config.model_warmup:
        for name, warmup_input in _needed(sample).items():
            source = (files or {})[warmup_input.input_data_file]
            _check(source, name, model_config_pb2.DataType.Name(warmup_input.data_type), tuple(warmup_input.dims))
            (folder / _FOLDER).mkdir(parents=True, exist_ok=True)
            target = folder / _FOLDER / warmup_input.input_data_file
            if not target.exists():
                copy(source, target)


def _needed(sample: Any) -> dict[str, Any]:
    """Return the inputs of a warm-up whose values are read from files, by the name of the input."""
    return {name: each for name, each in sample.inputs.items() if each.WhichOneof("input_data_type") == _FILE}


def _check(path: Path, name: str, kind: str, dims: tuple[int, ...]) -> None:
    size, actual = BYTES.get(kind.removeprefix("TYPE_"), 0) * prod(dims), path.stat().st_size
    if size and actual != size:
        raise StepError(
            f"the warm-up's data for {name} has {actual:,} bytes, but one row takes {size:,}",
            [f"{kind}, dims {list(dims)}"],
            "write one row as it lies in memory: array.tofile(...)",
        )


def _inputs(overrides: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    """Yield each input of each warm-up in the overrides of a model; values of a wrong type are skipped."""
    samples = overrides.get("model_warmup")
    for sample in samples if isinstance(samples, list | tuple) else ():
        inputs = sample.get("inputs") if isinstance(sample, Mapping) else None
        for warmup_input in inputs.values() if isinstance(inputs, Mapping) else ():
            if isinstance(warmup_input, Mapping):
                yield warmup_input
