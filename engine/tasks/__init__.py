"""Tasks: what a model is for, a file a task; other packages bring theirs by entry points."""

from engine.tasks.registry import either, every, find, known, makers, modules, names
from engine.tasks.task import TENSORS, Classes, Generates, Modality, Task

__all__ = [
    "TENSORS",
    "Classes",
    "Generates",
    "Modality",
    "Task",
    "either",
    "every",
    "find",
    "known",
    "makers",
    "modules",
    "names",
]
