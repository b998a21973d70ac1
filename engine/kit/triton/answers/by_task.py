"""Answers by task: each task names the module that makes its answers."""

from __future__ import annotations

import importlib
from pathlib import Path
from typing import TYPE_CHECKING

from engine import tasks
from engine.kit.checkpoints import sentences
from engine.tasks import Modality
from engine.tasks.answer import Answer, Unfit

if TYPE_CHECKING:
    from engine.kit.triton.config import Signature
    from engine.kit.triton.text import ServedTokenizer


def of(task: str, signature: Signature, checkpoint: Path, text: ServedTokenizer | None) -> Answer | None:
    """Return the postprocessing that computes answers to a task; None where clients get the model's own outputs.

    Where the task has answers but the model's outputs do not fit the task, the log says why clients get the model's own
    outputs.
    """
    definition = tasks.find(task)
    if definition.answers is None or (text is None and definition.modality is Modality.TEXT):
        return None
    # The module is imported by its name, so that its code counts only in the keys of recipes with this task.
    maker = importlib.import_module(definition.answers)
    try:
        answer: Answer | None = maker.make(signature, checkpoint, text)
    except (Unfit, sentences.UnsupportedModules) as reason:
        print(f"the package gives the model's own outputs, no answers to {task}: {reason}")
        return None
    return answer
