"""Task: what a model is for, and everything that depends on it, as one frozen value."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

MEASURED = 32
"""New tokens of a measured call where the recipe names no number: enough that the prompt is not most of the work."""


_PAIR = 2
"""Texts in a pair."""


class Modality(Enum):
    """The kind of input that a model takes."""

    TEXT = "text"
    IMAGE = "image"
    AUDIO = "audio"
    TENSORS = "tensors"
    """Tensors of unknown meaning, as a plain ONNX file takes them."""


class Generates(Enum):
    """How a model generates text, token by token: as a decoder alone, or as an encoder with a decoder."""

    CONTINUES = "continues a text"
    """A decoder alone: the prompt and the generated tokens share one row."""
    REWRITES = "turns one text into another"
    """An encoder reads the text, a decoder behind it writes another."""


class Classes(Enum):
    """The things that a classifier gives a class to. The classifier's head has `num_labels` outputs."""

    ROWS = "rows"
    TOKENS = "tokens"


@dataclass(frozen=True, kw_only=True)
class Task:
    """What a model is for. Code that depends on the task reads a field of this class and never compares names.

    `name` is the value of `task:` in recipes, and also the name of the task's module or entry point.
    """

    name: str
    modality: Modality = Modality.TEXT
    auto_class: str | None = None
    """The class of transformers that loads a model for the task; None for a task that transformers does not load."""
    encoder_class: str | None = None
    """The class of transformers that loads only the encoder of a family that also has decoders, such as T5."""
    outputs: tuple[str, ...] = ("logits",)
    """The names of the outputs that are exported, in this order."""
    texts: int = -1
    """The number of texts in a row of the input TEXT: 1, 2, or -1 where a row may have one or two."""
    context: bool = False
    """Whether the second text of a row is a context that holds the answer.

    Only the context is truncated then, and offsets count the letters of the context.
    """
    generates: Generates | None = None
    """How the model generates text; None for a model that generates none."""
    classes: Classes | None = None
    """The things that the model gives classes to; None for a model that does not classify."""
    embeds: bool = False
    """Whether the model's vectors are compared with each other.

    Validation then compares nearest neighbours, and weights of a pooler may be missing.
    """
    parts: tuple[str, ...] = ("tokenizer", "postprocess", "ensemble")
    """The models of a package besides the model itself, by their names under `package.triton.models`."""
    example: tuple[str, ...] = ("A fine day.",)
    """The texts of an example request. `[MASK]` stands for the model's own mask token."""
    answers: str | None = None
    """The module that makes the answer of the outputs; None where clients get the outputs as they are.

    The module has a function `make(signature, checkpoint, text)`, as the modules in `engine/kit/triton/answers` have.
    `text` is the tokenizer, or None for a model that takes no text.
    """

    @property
    def paired(self) -> bool:
        """Whether each row has two texts."""
        return self.texts == _PAIR

    @property
    def by_timm(self) -> bool:
        """Whether a checkpoint for this task is built by timm."""
        return self.modality is Modality.IMAGE and self.auto_class is None


TENSORS = Task(name="tensors", modality=Modality.TENSORS, parts=())
"""The task of a plain ONNX file whose recipe names none. A recipe cannot name this task."""
