"""Tasks: what a model is for, a file a task; other packages bring theirs by entry points."""

from engine.tasks.answer import Answer, Tensor, Unfit
from engine.tasks.registry import either, every, find, generates, known, makers, modules, names
from engine.tasks.task import MEASURED, TENSORS, Classes, Generates, Modality, Task

__all__ = [
    "MEASURED",
    "TENSORS",
    "VERSION",
    "Answer",
    "Classes",
    "Generates",
    "Modality",
    "Task",
    "Tensor",
    "Unfit",
    "either",
    "every",
    "find",
    "generates",
    "known",
    "makers",
    "modules",
    "names",
]

VERSION = 1
"""The version of what a task of another package says: see docs/stability.md."""
