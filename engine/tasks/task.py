"""Task: what a model is for, and all that follows from it, as one frozen value."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

MEASURED = 32
"""New tokens of a call that is measured where the recipe does not say: so many that the prompt is not most of it."""


class Modality(Enum):
    """What a model takes."""

    TEXT = "text"
    IMAGE = "image"
    AUDIO = "audio"
    TENSORS = "tensors"
    """Numbers of which nobody knows what they mean."""


class Generates(Enum):
    """How a model generates text, token by token; each way is another kind of model."""

    CONTINUES = "continues a text"
    """A decoder alone: the prompt and what is generated share one row."""
    REWRITES = "turns one text into another"
    """An encoder reads the text, a decoder behind it writes another."""


class Classes(Enum):
    """What a model gives classes to: its head is as wide as `num_labels` says."""

    ROWS = "rows"
    TOKENS = "tokens"


@dataclass(frozen=True, kw_only=True)
class Task:
    """What a model is for. Whoever needs to know something of a task asks this, and compares no name.

    `name` is what recipes say; a module of ours and an entry point are called the same.
    """

    name: str
    modality: Modality = Modality.TEXT
    auto_class: str | None = None
    """The class of transformers that loads a model for it; None where transformers has nothing to do with it."""
    encoder_class: str | None = None
    """The one that loads the encoder alone of a family that also has decoders."""
    outputs: tuple[str, ...] = ("logits",)
    """What of such a model's outputs is exported, by name and in this order."""
    texts: int = -1
    """How many texts make a row of TEXT: 1, 2, or -1 where the model may be about one or about two."""
    context: bool = False
    """Whether the second text of a row is one that answers lie in: only it is cut, and offsets count its letters."""
    generates: Generates | None = None
    classes: Classes | None = None
    embeds: bool = False
    """Whether its vectors are compared with each other: poolers do not count, neighbours do."""
    parts: tuple[str, ...] = ("tokenizer", "postprocess", "ensemble")
    """The models of a package beside the model itself, as `package.triton.models` calls them."""
    example: tuple[str, ...] = ("A fine day.",)
    """The texts of an example request; `[MASK]` stands for how the model writes a mask."""
    answers: str | None = None
    """The module that makes an answer of the outputs; None where they are what clients get.

    Its `make(signature, checkpoint, text)` is as those in `engine/kit/triton/answers` are; `text` is the tokenizer,
    None where the modality is not text.
    """

    @property
    def paired(self) -> bool:
        """Whether each row is about two texts."""
        return self.texts == 2  # noqa: PLR2004

    @property
    def by_timm(self) -> bool:
        """Whether timm builds a checkpoint that is for this."""
        return self.modality is Modality.IMAGE and self.auto_class is None


TENSORS = Task(name="tensors", modality=Modality.TENSORS, parts=())
"""What a plain ONNX file is for where the recipe does not say: no recipe can ask for it by name."""
