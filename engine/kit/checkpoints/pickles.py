"""Pickles: convert pickled weights to safetensors, by torch's loader that accepts tensors only."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

from engine.errors import StepError
from engine.kit.checkpoints import json_files, model_files, weights
from engine.text import reasons

if TYPE_CHECKING:
    import torch

_GLOBAL = re.compile(r"(?:GLOBAL|global)\s+([\w.]+)")


def convert(directory: Path) -> None:
    """Replace the pickled weights in `directory` by safetensors that hold equal tensors under equal names.

    Tensors that share their memory (tied weights) are each written in full. Raises StepError where a pickle holds
    anything but tensors, or names code to run.
    """
    single, index = directory / model_files.PICKLE, directory / model_files.PICKLE_INDEX
    if single.is_file():
        _convert_file(single, directory / model_files.WEIGHTS)
        return
    files = _weight_map(index)
    for name in sorted(set(files.values())):
        if not (directory / name).is_file():
            raise StepError("parts of the weights are missing", [f"{index.name} names {name}"], "fetch the model again")
        _convert_file(directory / name, directory / _renamed(name))
    total = sum((directory / _renamed(name)).stat().st_size for name in set(files.values()))
    written = {"metadata": {"total_size": total}, "weight_map": {key: _renamed(files[key]) for key in sorted(files)}}
    (directory / model_files.INDEX).write_text(json.dumps(written, indent=2) + "\n")
    index.unlink()


def _convert_file(pickle: Path, target: Path) -> None:
    from safetensors.torch import save_file

    print(f"converting {pickle.name} to {target.name}")
    save_file(_own_memory(_tensors(pickle)), target, metadata={"format": "pt"})
    target.chmod(0o644)
    pickle.unlink()


def _tensors(pickle: Path) -> dict[str, torch.Tensor]:
    """Return the state dict in a pickle, loaded with `weights_only=True`, so that no code in the pickle runs.

    Raises StepError.
    """
    import torch

    weights.refuse_pointer(pickle)
    try:
        loaded = torch.load(pickle, map_location="cpu", weights_only=True)
    except Exception as error:
        match = _GLOBAL.search(str(error))
        reason = f"it asks for {match[1]}" if match else reasons.first_line(error)
        raise StepError(
            f"{pickle.name} is cut off, or holds more than tensors",
            [reason, "the loader admits nothing but tensors, so no code in the file was run"],
            "if you trust its author, load it where it comes from and save it with "
            "save_pretrained(path, safe_serialization=True)",
        ) from error
    strangers = _strangers(loaded)
    if strangers:
        raise StepError(
            f"{pickle.name} is no plain table of tensors",
            strangers,
            "load it where it comes from and save it with save_pretrained(path, safe_serialization=True)",
        )
    return dict(loaded)


def _strangers(loaded: Any) -> list[str]:
    """Return lines for an error about the values in a loaded pickle that are no tensors; [] where all are tensors."""
    import torch

    if not isinstance(loaded, dict) or not loaded:
        return [f"it holds a {type(loaded).__name__}" + (" without anything in it" if loaded == {} else "")]
    kinds = [(key, value) for key, value in loaded.items() if not isinstance(value, torch.Tensor)]
    return [f"{key!r} is a {type(value).__name__}" for key, value in kinds[:6]]


def _own_memory(tensors: dict[str, torch.Tensor]) -> dict[str, torch.Tensor]:
    """Return the tensors, each with memory of its own, because safetensors cannot store views or shared memory."""
    pointers: set[int] = set()
    owned = {}
    for name in sorted(tensors):
        tensor = tensors[name].detach()
        storage = tensor.untyped_storage()
        whole = tensor.is_contiguous() and storage.nbytes() == tensor.numel() * tensor.element_size()
        owned[name] = tensor if whole and storage.data_ptr() not in pointers else tensor.clone().contiguous()
        pointers.add(storage.data_ptr())
    return owned


def _weight_map(index: Path) -> dict[str, str]:
    """Return each tensor's name -> the name of the pickle file with the tensor.

    Raises StepError where the index names a file that is no shard of the weights by its name.
    """
    files = json_files.weight_map(index)
    if not all(model_files.PICKLE_SHARD.fullmatch(name) for name in files.values()):
        raise StepError(f"{index.name} names files that are no parts of the weights", sorted(set(files.values()))[:6])
    return files


def _renamed(name: str) -> str:
    return name.replace("pytorch_model", "model").removesuffix(".bin") + ".safetensors"
