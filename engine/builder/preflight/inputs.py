"""The model's inputs: whether a text is enough for the model, and whether tools of transformers make them of a text."""

from __future__ import annotations

from pathlib import Path

from engine import tasks
from engine.kit.checkpoints import checkpoint as checkpoints
from engine.kit.checkpoints import custom_code, model_inputs
from engine.kit.reference.quiet import quiet
from engine.tasks import Modality


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
