"""RivalModel: the model as a user would run it without a recipe, measured beside the built model."""

from __future__ import annotations

from pathlib import Path
from typing import Any, NamedTuple

from engine.errors import StepError


class RivalModel(NamedTuple):
    """The original model that a rival runs: exported to ONNX, and as a checkpoint where there is a checkpoint."""

    exported: Path
    checkpoint: Path | None = None
    task: str | None = None
    """The task that the recipe names; None where the checkpoint's config names the task."""
    num_labels: int | None = None
    random_head: bool = False
    images: Any = None
    """The section `images` of the recipe, for a model of timm: the size and normalization of images."""
    new_tokens: int | None = None
    """The number of tokens that a measured call generates; None for a model that generates no text."""
    compile: str | None = None
    """The mode in which the runtime compiles the model for each shape; None for a model that is not compiled."""
    scratch: Path | None = None
    """The folder for the files of compilers; None for the folder of the runtime."""


def no_checkpoint(title: str) -> StepError:
    """Return the error for an ONNX file as the model of a rival that runs checkpoints; `title` names the runtime."""
    return StepError(
        f"An ONNX file cannot be measured against {title}: there is no {title} model of it",
        hint=f"take runtime: {title.lower()} out of bench.against",
    )


Original = RivalModel
"""The former name of `RivalModel`, which runtimes of other packages may still use (docs/stability.md)."""
