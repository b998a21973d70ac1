"""The model's inputs: whether a text is enough for the model, and whether tools of transformers make them of a text."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from engine import tasks
from engine.errors import StepError
from engine.kit.checkpoints import alternatives, custom_code, json_files, model_inputs
from engine.kit.checkpoints import checkpoint as checkpoints
from engine.kit.reference.quiet import quiet
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


def refuse(checkpoint: Path, task: str, *, tokenizer: str | None) -> None:
    """Raise StepError for a model of a text task that takes more than a text, or whose own code makes its inputs.

    `tokenizer` is the tokenizer that the recipe names, which takes the place of the model's own.
    """
    definition = tasks.find(task)
    if checkpoints.kind(checkpoint) != "transformers" or definition.modality is not Modality.TEXT:
        return
    if tokenizer is None:
        custom_code.refuse(checkpoint)
    config = checkpoints.config(checkpoint)
    declared = model_inputs.declared(config)
    if declared is not None:
        architecture, parameters = declared
        model_inputs.refuse_beyond_text(architecture, parameters, config, generates=definition.generates is not None)


def refuse_tokenizer(checkpoint: Path, task: str, *, tokenizer: str | None) -> None:
    """Raise StepError for a model of a text task whose own tokenizer cannot become a tokenizer.json."""
    if tokenizer is None and tasks.find(task).modality is Modality.TEXT:
        refuse_unconvertible(checkpoint)


def refuse_unconvertible(directory: Path) -> None:
    """Raise StepError for a tokenizer that cannot become a tokenizer.json; transformers is asked where none is there.

    The import of transformers takes seconds, which only tokenizers without a tokenizer.json cost.
    """
    if checkpoints.tokenizer_file(directory) is None and checkpoints.has_tokenizer(directory):
        from engine.kit.inputs import tokenizer

        with quiet():
            tokenizer.convert(directory)


def refuse_processor(checkpoint: Path, task: str) -> None:
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
