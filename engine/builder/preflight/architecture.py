"""The architecture and the inputs of a checkpoint: whether they can be built for a task, by the table of trials."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from engine import tasks
from engine.errors import StepError
from engine.kit.checkpoints import checkpoint as checkpoints
from engine.kit.checkpoints import exportable, json_files, model_inputs, unbuildable
from engine.kit.checkpoints.exportable import Exportability
from engine.kit.reference import export_ways
from engine.kit.reference.model_loading import quiet

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


def refuse_unknown(checkpoint: Path, requested: str | None) -> None:
    """Raise StepError where config.json names no model type, or one that the installed transformers does not have.

    `requested` is the task that the recipe names. No other task makes such a model one that can be built, so that an
    error about the task would lead nowhere.
    """
    if checkpoints.kind(checkpoint) != "transformers":
        return
    config = checkpoints.config(checkpoint)
    model_type = config.get("model_type")
    if model_type is None:
        raise StepError(
            "config.json names no model_type: nobody can tell which architecture the weights belong to",
            [f"it names: {', '.join(list(config)[:8]) or 'nothing'}"],
            "save the model with save_pretrained() of transformers, or name an .onnx file as the source",
        )
    if exportable.is_known(model_type):
        return
    hint = unbuildable.alternative(checkpoint, requested or checkpoints.own_task(checkpoint) or "")
    if config.get("auto_map"):
        raise StepError(
            f"the code of {model_type} is in the checkpoint, and that code is never run (trust_remote_code)",
            ["config.json has auto_map, and transformers itself has no such model type"],
            hint,
        )
    raise StepError(
        f"transformers {exportable.installed()} has no model type {model_type}",
        ["config.json names it as the model's architecture"],
        f"install a transformers that has the model type; or {hint}",
    )


def refuse(checkpoint: Path, task: str) -> None:
    """Raise StepError where the table says that the architecture of a checkpoint cannot be built for a task.

    A build does not look at the table. A build tries, because a config of the user's own may work where the tiny one of
    the trial did not (docs/adr/0029).
    """
    row = None if _is_of_images(checkpoint, task) else _row(checkpoint, task)
    if row is not None and row.verdict == "fails":
        raise StepError(
            f"{row.architecture if row.has_class else row.model_type} cannot be built for {task}",
            [row.reason, f"tried with transformers {exportable.version()}, on a small random model"],
            unbuildable.alternative(checkpoint, task),
        )


def refuse_class(checkpoint: Path, task: str) -> None:
    """Raise StepError for a task of images where config.json names no class of transformers, of a family of texts."""
    config, known = checkpoints.config(checkpoint), tasks.known(task)
    is_of_texts = exportable.tasks_of(str(config.get("model_type"))) and model_inputs.declared(config) is None
    if known is not None and known.takes_images and is_of_texts:
        named = checkpoints.architecture(checkpoint)
        raise StepError(f"transformers has no {named} for {task}", hint=unbuildable.alternative(checkpoint, task))


def untried(checkpoint: Path, task: str) -> str | None:
    """Return why nobody knows whether the architecture can be built for a task; None where the table tells."""
    if checkpoints.kind(checkpoint) != "transformers" or _is_of_images(checkpoint, task):
        return None
    row = _row(checkpoint, task)
    if row is None:
        return f"{checkpoints.config(checkpoint).get('model_type', 'a model without model_type')} for {task}"
    return f"{row.architecture} for {task} ({row.reason})" if row.verdict == "untried" else None


def refuse_inputs(checkpoint: Path, task: str, *, tokenizer: str | None) -> None:
    """Raise StepError for a model of a text task that takes more than a text, or whose own code makes its inputs.

    `tokenizer` is the tokenizer that the recipe names, which takes the place of the model's own.
    """
    if checkpoints.kind(checkpoint) != "transformers" or not is_of_text(task):
        return
    if tokenizer is None:
        checkpoints.refuse_own_code(checkpoint)
    config = checkpoints.config(checkpoint)
    declared = model_inputs.declared(config)
    if declared is not None and not _is_of_images(checkpoint, task):
        architecture, parameters = declared
        model_inputs.refuse_beyond_text(architecture, parameters, config, generates=tasks.generates(task))


def refuse_processor(checkpoint: Path, task: str) -> None:
    """Raise StepError for a text task of a model whose processor prepares images or sound, too.

    A model that generates text can do so without an image; a model of any other task was trained with both.
    """
    if checkpoints.kind(checkpoint) != "transformers" or not is_of_text(task) or tasks.generates(task):
        return
    if _is_of_images(checkpoint, task):
        return
    for name in _FILES:
        kinds = _kinds(json_files.settings(checkpoint / name))
        if kinds:
            other = unbuildable.alternative(checkpoint, task)
            raise StepError(
                f"the model takes {' and '.join(kinds)} besides text: {task} of text alone would not be its answer",
                [f"{name} names the part of the processor that prepares {' and '.join(kinds)}"],
                f"if the model is trained for text alone, remove {name}; or {other}",
            )


def refuse_unconvertible(directory: Path) -> None:
    """Raise StepError for a tokenizer that cannot become a tokenizer.json; transformers is asked where none is there.

    The import of transformers takes seconds, which only tokenizers without a tokenizer.json cost.
    """
    if checkpoints.tokenizer_file(directory) is None and checkpoints.has_tokenizer(directory):
        from engine.kit.inputs import tokenizer

        with quiet():
            tokenizer.convert(directory)


def is_of_text(task: str) -> bool:
    """Tell whether a task is one of texts."""
    known = tasks.known(task)
    return known is not None and known.takes_texts


def _is_of_images(checkpoint: Path, task: str) -> bool:
    """Tell whether a model takes images for a task, or is trained beside a tower of images: no text is trained alone.

    The table of trials is about tasks of texts.
    """
    known = tasks.known(task)
    if known is None or checkpoints.kind(checkpoint) != "transformers":
        return False
    named = str(checkpoints.architecture(checkpoint))
    return known.takes_images or (known.embeds and export_ways.gives_embeddings(checkpoints.config(checkpoint), named))


def _row(checkpoint: Path, task: str) -> Exportability | None:
    """Return the table's row of a checkpoint and a task; None for a checkpoint of timm, and for an ONNX file."""
    if checkpoints.kind(checkpoint) != "transformers":
        return None
    model_type = checkpoints.config(checkpoint).get("model_type")
    every = exportable.rows().get(model_type, ()) if isinstance(model_type, str) else ()
    if every and not every[0].has_class:
        return every[0]
    return exportable.row(str(model_type), task, checkpoints.architecture(checkpoint))


def _kinds(fields: Mapping[str, Any]) -> list[str]:
    kinds = [kind for field, kind in _PARTS.items() if fields.get(field)]
    if all(field in fields for field in _SOUND):
        kinds.append("sound")
    return list(dict.fromkeys(kinds))
