"""Sentences: reads from `modules.json` how a sentence-transformers model makes one vector of a text's hidden states."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from engine.kit.checkpoints import json_files

Pooling = Literal["mean", "cls", "max"]
"""The ways of pooling that `kit/accuracy/pooling.py` computes, for the comparison with the original."""

MODES = ("cls", "max", "mean", "mean_sqrt_len_tokens", "weightedmean", "lasttoken")
"""All modes of sentence-transformers' Pooling module, in the order in which it joins them (`modules/pooling.py`)."""
_SWITCHES = {
    "cls": "pooling_mode_cls_token",
    "max": "pooling_mode_max_tokens",
    "mean": "pooling_mode_mean_tokens",
    "mean_sqrt_len_tokens": "pooling_mode_mean_sqrt_len_tokens",
    "weightedmean": "pooling_mode_weightedmean_tokens",
    "lasttoken": "pooling_mode_lasttoken",
}
"""Each pooling mode -> the field of an older Pooling config that switches the mode on."""
_DEFAULT_FOLDER = "1_Pooling"
"""The name of the Pooling module's folder where `modules.json` names no folder."""


@dataclass(frozen=True)
class Sentences:
    """The modes by which hidden states are pooled into one vector, and whether the vector is scaled to length 1."""

    modes: tuple[str, ...]
    normalize: bool


class UnsupportedModules(Exception):  # noqa: N818 - a reason to say, not an error of anybody
    """A sentence-transformers model has a part that this project does not support; the message names that part."""


def load(checkpoint: Path) -> Sentences | None:
    """Return how the checkpoint's modules make one vector of a text; None for no sentence-transformers checkpoint.

    Raises UnsupportedModules.
    """
    modules = _modules(checkpoint)
    if not modules:
        return None
    kinds = [kind for kind, _ in modules]
    if kinds not in (["Transformer", "Pooling"], ["Transformer", "Pooling", "Normalize"]):
        raise UnsupportedModules(f"modules.json has {', '.join(kinds)}")
    default = json_files.settings(checkpoint / "config_sentence_transformers.json").get("default_prompt_name")
    if default:
        raise UnsupportedModules(f"texts get the prompt {default!r} in front")
    modes = _modes(json_files.settings(_pooling_config(checkpoint)))
    unknown = [mode for mode in modes if mode not in MODES]
    if unknown:
        raise UnsupportedModules(f"its pooling mode is {', '.join(unknown)}")
    return Sentences(modes, normalize="Normalize" in kinds)


def has_pooling(checkpoint: Path) -> bool:
    """Whether the checkpoint has the config of a Pooling module, as every sentence-transformers model has."""
    return _pooling_config(checkpoint).is_file()


def pooling(checkpoint: Path) -> Pooling | None:
    """Return the checkpoint's pooling mode: mean, cls or max.

    The pooling mode is None for a checkpoint without a Pooling module, with several modes, or with a mode other than
    mean, cls and max.
    """
    if not has_pooling(checkpoint):
        return None
    match _modes(json_files.settings(_pooling_config(checkpoint))):
        case ("mean" | "cls" | "max" as mode,):
            return mode
        case _:
            return None


def _pooling_config(checkpoint: Path) -> Path:
    """Return the path of the Pooling module's config: in the folder that `modules.json` names, else in `1_Pooling`."""
    folders = [folder for kind, folder in _modules(checkpoint) if kind == "Pooling" and folder]
    return checkpoint / (folders[0] if folders else _DEFAULT_FOLDER) / "config.json"


def _modules(checkpoint: Path) -> list[tuple[str, str]]:
    """Return the kind and the folder of each module that `modules.json` lists.

    A very old sentence-transformers model has no `modules.json` and consists of a Transformer and a Pooling module.
    Raises StepError.
    """
    path = checkpoint / "modules.json"
    listed = json_files.load(path) if path.is_file() else []
    modules = [
        (str(module.get("type", "")).rpartition(".")[2], Path(str(module.get("path", ""))).name)
        for module in (listed if isinstance(listed, list) else [])
        if isinstance(module, dict)
    ]
    if not modules and (checkpoint / _DEFAULT_FOLDER / "config.json").is_file():
        return [("Transformer", ""), ("Pooling", _DEFAULT_FOLDER)]
    return modules


def _modes(config: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the modes in `pooling_mode` of a Pooling config, or in an older config's switches; the mean by default."""
    named = config.get("pooling_mode")
    if named is not None:
        return tuple(str(mode) for mode in named) if isinstance(named, list) else (str(named),)
    return tuple(mode for mode, switch in _SWITCHES.items() if config.get(switch)) or ("mean",)
