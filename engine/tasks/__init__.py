"""Tasks: the purposes of models; each is a module of `engine.tasks`, or an entry point of another Python package."""

from engine.tasks.answer import Answer, AnswerTensor, Tensor, Unfit
from engine.tasks.registry import either, every, find, generates, known, makers, modules, names
from engine.tasks.task import MEASURED, TENSORS, Classes, Generates, Modality, Task, input_word

__all__ = [
    "MEASURED",
    "TENSORS",
    "VERSION",
    "Answer",
    "AnswerTensor",
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
    "input_word",
    "known",
    "makers",
    "modules",
    "names",
]

VERSION = 1
"""The version of the interface through which other Python packages define tasks (docs/stability.md)."""
