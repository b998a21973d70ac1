"""Tasks: the purposes of models; each is a module of `engine.tasks`, or an entry point of another Python package."""

from typing import TYPE_CHECKING

from engine.tasks.registry import either, every, find, generates, known, makers, modules, names
from engine.tasks.task import MEASURED, TENSORS, Classes, Generates, Modality, Task

if TYPE_CHECKING:
    from engine.tasks.answer import Answer, AnswerTensor, Tensor, Unfit

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
    "known",
    "makers",
    "modules",
    "names",
]

VERSION = 1
"""The version of the interface through which other Python packages define tasks (docs/stability.md)."""


def __getattr__(name: str) -> object:
    """Return a class of `engine.tasks.answer`, which nothing imports before a package is made."""
    if name in ("Answer", "AnswerTensor", "Tensor", "Unfit"):
        from engine.tasks import answer

        return getattr(answer, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
