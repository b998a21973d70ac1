"""The model's inputs: whether a text is enough for the model, and whether tools of transformers make them of a text."""

from __future__ import annotations

from pathlib import Path

from engine import tasks
from engine.kit.checkpoints import checkpoint as checkpoints
from engine.kit.checkpoints import custom_code, model_inputs
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
