"""Sentences: what sentence-transformers does to the hidden states of a text, by the checkpoint's own files."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from engine.kit.checkpoints import json_files

MODES = ("cls", "max", "mean", "mean_sqrt_len_tokens", "weightedmean", "lasttoken")
"""The ways to pool, in the order in which several stand one behind the other (`modules/pooling.py`)."""
_SWITCHES = {
    "cls": "pooling_mode_cls_token",
    "max": "pooling_mode_max_tokens",
    "mean": "pooling_mode_mean_tokens",
    "mean_sqrt_len_tokens": "pooling_mode_mean_sqrt_len_tokens",
    "weightedmean": "pooling_mode_weightedmean_tokens",
    "lasttoken": "pooling_mode_lasttoken",
}


@dataclass(frozen=True)
class Sentences:
    """How states are pooled, and whether the vector is scaled to length 1."""

    modes: tuple[str, ...]
    normalise: bool


class Unsupported(Exception):  # noqa: N818 - a reason to say, not an error of anybody
    """What a sentence-transformers model does that is not known here."""


def load(checkpoint: Path) -> Sentences | None:
    """Return what the checkpoint's modules do; None where it is no sentence-transformers model. Raises Unsupported."""
    modules = _modules(checkpoint)
    if not modules:
        return None
    kinds = [kind for kind, _ in modules]
    if kinds not in (["Transformer", "Pooling"], ["Transformer", "Pooling", "Normalize"]):
        raise Unsupported(f"modules.json has {', '.join(kinds)}")
    default = json_files.settings(checkpoint / "config_sentence_transformers.json").get("default_prompt_name")
    if default:
        raise Unsupported(f"texts get the prompt {default!r} in front")
    said = json_files.settings(checkpoint / modules[1][1] / "config.json")
    modes = _modes(said)
    unknown = [mode for mode in modes if mode not in MODES]
    if unknown:
        raise Unsupported(f"its pooling mode is {', '.join(unknown)}")
    return Sentences(modes, normalise="Normalize" in kinds)


def _modules(checkpoint: Path) -> list[tuple[str, str]]:
    """Return the kind and folder of each module: by modules.json, or as very old models, which had none, are built."""
    found = [
        (str(each.get("type", "")).rpartition(".")[2], Path(str(each.get("path", ""))).name)
        for each in _listed(checkpoint / "modules.json")
        if isinstance(each, dict)
    ]
    if not found and (checkpoint / "1_Pooling" / "config.json").is_file():
        return [("Transformer", ""), ("Pooling", "1_Pooling")]
    return found


def _listed(path: Path) -> list[Any]:
    entries = json_files.load(path) if path.is_file() else []
    return entries if isinstance(entries, list) else []


def _modes(said: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the modes: by word, or by switches of which none means the mean."""
    named = said.get("pooling_mode")
    if named is not None:
        return tuple(str(mode) for mode in named) if isinstance(named, list) else (str(named),)
    return tuple(mode for mode, switch in _SWITCHES.items() if said.get(switch)) or ("mean",)
