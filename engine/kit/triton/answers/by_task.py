"""Answers by task: each task names the module that makes its answers."""

from __future__ import annotations

import importlib
from pathlib import Path
from typing import TYPE_CHECKING

from engine import tasks
from engine.errors import StepError
from engine.tasks.answer import Answer, Unfit

if TYPE_CHECKING:
    from engine.kit.triton.config import Signature
    from engine.kit.triton.text import ServedTokenizer


def of(task: str, signature: Signature, checkpoint: Path, text: ServedTokenizer | None) -> Answer | None:
    """Return the postprocessing that computes answers to a task; None where clients get the model's own outputs.

    Raises StepError where the task has answers, and the model's outputs are not those of the task.
    """
    definition = tasks.find(task)
    if definition.answers is None or (text is None and definition.takes_texts):
        return None
    # The module is imported by its name, so that its code counts only in the keys of recipes with this task.
    maker = importlib.import_module(definition.answers)
    try:
        answer: Answer | None = maker.make(signature, checkpoint, text)
    except Unfit as reason:
        raise refusal(task, reason) from None
    return answer


def refusal(task: str, reason: Unfit) -> StepError:
    """Return the error for a model whose outputs are not those of its task."""
    return StepError(
        f"the model's outputs are no answers to {task}",
        [str(reason)],
        "export the model with the task's outputs; or say package.triton.postprocess: false for the model's own",
    )
