"""Labels: what a checkpoint calls its classes, and what makes a score of a logit."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal

from engine.kit.checkpoints import checkpoint as checkpoints

Score = Literal["softmax", "sigmoid", "number"]


def names(checkpoint: Path, classes: int) -> list[str]:
    """Return a name for each class.

    As config.json has them: transformers' `id2label`, timm's `label_names`. Where it names none, or not as many:
    LABEL_0, LABEL_1, ..., which is what transformers calls them then, and bare numbers for any other model.
    """
    settings = checkpoints.config(checkpoint)
    told = _by_number(settings.get("id2label")) or _listed(settings.get("label_names"))
    if len(told) == classes:
        return told
    prefix = "LABEL_" if checkpoints.kind(checkpoint) == "transformers" else ""
    return [f"{prefix}{number}" for number in range(classes)]


def score(checkpoint: Path, classes: int) -> Score:
    """Return what makes a score of a logit, by config.json's `problem_type`.

    Where several labels may hold at once it is the sigmoid, in a regression the number itself. One class alone is a
    regression, too: that is what transformers trains then (`modeling_utils`' loss for `num_labels == 1`).
    """
    problem = checkpoints.config(checkpoint).get("problem_type")
    if problem == "multi_label_classification":
        return "sigmoid"
    return "number" if problem == "regression" or (problem is None and classes == 1) else "softmax"


def _by_number(said: Any) -> list[str]:
    """Return the names in `id2label`, whose keys are 0, 1, ... as texts; [] where they are anything else."""
    if not isinstance(said, Mapping):
        return []
    found = {str(number): str(name) for number, name in said.items()}
    numbers = [str(number) for number in range(len(found))]
    return [found[number] for number in numbers] if set(found) == set(numbers) else []


def _listed(said: Any) -> list[str]:
    return [str(name) for name in said] if isinstance(said, list) else []
