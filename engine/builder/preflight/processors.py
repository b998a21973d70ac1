"""Processors: what the processor's files of a checkpoint say that the model takes besides text."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from engine import tasks
from engine.errors import StepError
from engine.kit.checkpoints import alternatives, json_files
from engine.kit.checkpoints import checkpoint as checkpoints
from engine.tasks import Modality

_FILES = ("preprocessor_config.json", "processor_config.json")
_PARTS = {
    "image_processor_type": "images",
    "image_processor": "images",
    "video_processor_type": "videos",
    "video_processor": "videos",
    "feature_extractor": "sound",
}
"""Fields of the processor's files -> what the part of the processor prepares."""
_SOUND = ("feature_size", "sampling_rate")
"""Fields of the feature extractors of sound."""


def refuse(checkpoint: Path, task: str) -> None:
    """Raise StepError for a text task of a model whose processor prepares images or sound, too.

    A model that generates text can do so without an image; a model of any other task was trained with both.
    """
    known = tasks.known(task)
    if known is None or known.modality is not Modality.TEXT or known.generates is not None:
        return
    if checkpoints.kind(checkpoint) != "transformers":
        return
    for name in _FILES:
        kinds = _kinds(json_files.settings(checkpoint / name))
        if kinds:
            raise StepError(
                f"the model takes {' and '.join(kinds)} besides text: {task} of text alone would not be its answer",
                [f"{name} names the part of the processor that prepares {' and '.join(kinds)}"],
                f"if the model is trained for text alone, remove {name}; or {alternatives.nearest(checkpoint, task)}",
            )


def _kinds(fields: Mapping[str, Any]) -> list[str]:
    kinds = [kind for field, kind in _PARTS.items() if fields.get(field)]
    if all(field in fields for field in _SOUND):
        kinds.append("sound")
    return list(dict.fromkeys(kinds))
