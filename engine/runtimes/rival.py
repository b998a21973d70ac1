"""The model of a rival: a rival is what a user would run without a recipe, and is measured beside our build."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any


@dataclass(frozen=True)
class RivalModel:
    """The model before anything was done to it: as ONNX, and as a checkpoint where there is one."""

    exported: Path
    checkpoint: Path | None = None
    task: str | None = None
    """What the recipe says that it is for; None where the checkpoint says it."""
    num_labels: int | None = None
    random_head: bool = False
    images: Any = None
    """How images come to a model of timm."""
    new_tokens: int | None = None
    """How many tokens a call generates where the model generates text."""
