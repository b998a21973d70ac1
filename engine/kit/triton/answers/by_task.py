"""Answers by task: each task names the module that makes its answers."""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from engine import tasks
from engine.errors import StepError
from engine.kit.checkpoints import labels
from engine.kit.triton.serving import NAMED
from engine.tasks.answer import Answer, Unfit

if TYPE_CHECKING:
    from engine.kit.triton.config import Signature
    from engine.kit.triton.serving import Serving
    from engine.kit.triton.text import ServedTokenizer


def of_package(
    serving: Serving, signature: Signature, checkpoint: Path, task: str, text: ServedTokenizer | None
) -> Answer | None:
    """Return the post-processing that the recipe names, else that of the task. Raises StepError as both do."""
    if serving.named is None:
        return of(task, signature, checkpoint, text, serving.answers)
    maker, names = importlib.import_module(NAMED), labels.names(checkpoint, None)
    try:
        answer: Answer = maker.make(serving.named, checkpoint, signature, names=names, preprocess=serving.preprocess)
    except Unfit as reason:
        raise refusal("`postprocess`", reason) from None
    return answer


def of(
    task: str,
    signature: Signature,
    checkpoint: Path,
    text: ServedTokenizer | None,
    options: Mapping[str, Any] | None = None,
) -> Answer | None:
    """Return the postprocessing that computes answers to a task; None where clients get the model's own outputs.

    An option of the recipe's section `package.answers` takes the place of the setting with its name.
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
    if answer is None:
        return None
    own = {name: (options or {}).get(name, value) for name, value in answer.settings.items()}
    return replace(answer, settings=own)


def refusal(task: str, reason: Unfit) -> StepError:
    """Return the error for a model whose outputs are not those of its task."""
    return StepError(
        f"the model's outputs are no answers to {task}",
        [str(reason)],
        "export the model with the task's outputs; or say package.triton.postprocess: false for the model's own",
    )
