"""Answers by task: a task names the module that makes its own."""

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
    """Return what is made of the outputs of a model for a task; None where they are what clients get.

    Where a task is known and its answer cannot be made, the log says why.
    """
    asked = tasks.find(task)
    if asked.answers is None or (text is None and asked.modality is Modality.TEXT):
        return None
    # By its name, so that a maker counts in the keys of the tasks that it is for, and of no others.
    maker = importlib.import_module(asked.answers)
    try:
        made: Answer | None = maker.make(signature, checkpoint, text)
    except (Unfit, sentences.UnsupportedModules) as reason:
        print(f"the package gives the model's own outputs, no answers to {task}: {reason}")
        return None
    return made
