"""Task: one frozen value with the purpose of a model and everything that depends on the purpose."""

from __future__ import annotations

from enum import Enum
from typing import NamedTuple

MEASURED = 32
"""The default number of new tokens in a measured call, large enough that generating takes most of the time."""


_PAIR = 2
"""The number of texts in a pair."""


class Modality(Enum):
    """The kind of input that a model takes."""

    TEXT = "text"
    IMAGE = "image"
    IMAGE_AND_TEXTS = "image_text"
    """An image and several texts about it, such as the candidate labels of a zero-shot classifier."""
    AUDIO = "audio"
    TENSORS = "tensors"
    """Tensors whose meaning is unknown, such as the inputs of a plain ONNX file."""


class Generates(Enum):
    """How a model generates text, token by token: as a decoder-only model or as an encoder-decoder model."""

    CONTINUES = "continues a text"
    """A decoder-only model: the prompt and the generated tokens form one sequence."""
    REWRITES = "turns one text into another"
    """An encoder-decoder model: the encoder reads a text, and the decoder writes a new text."""


class Classes(Enum):
    """The unit that a classifier assigns a class to, a row or a token; its head has `num_labels` outputs."""

    ROWS = "rows"
    TOKENS = "tokens"


class Task(NamedTuple):
    """The purpose of a model, such as text classification, and everything in a package that depends on the purpose.

    Code that depends on the task reads a field of `Task` and never compares the names of tasks.

    `name` is the value of `task:` in recipes, and also the name of the task's module or entry point.
    """

    name: str
    modality: Modality = Modality.TEXT
    usual_models: tuple[str, ...] = ()
    """Model types of transformers that are often used for the task, for the hints of errors."""
    timm: bool = False
    """Whether models of the library timm do the task, too."""
    auto_class: str | None = None
    """The name of the transformers class that loads a model for the task; None where transformers loads none for it."""
    encoder_class: str | None = None
    """The name of the transformers class that loads only the encoder of an encoder-decoder model, such as T5."""
    outputs: tuple[str, ...] = ("logits",)
    """The names of the exported graph's outputs, in the order in which the graph has them."""
    texts: int = -1
    """The number of texts in a row of the input TEXT: 1, 2, or -1 where a row may have one or two."""
    context: bool = False
    """Whether the second text of a row is a context that holds the answer.

    Where a row has a context, the tokenizer truncates only the context, and the answer's offsets count the characters
    of the context.
    """
    generates: Generates | None = None
    """How the model generates text; None for a model that generates none."""
    classes: Classes | None = None
    """The unit that the model assigns a class to, a row or a token; None for a model that does not classify."""
    embeds: bool = False
    """Whether the model gives embeddings: vectors that users compare with each other.

    For a task with embeddings, validation compares nearest neighbours, and a checkpoint may lack the pooler's weights.
    """
    parts: tuple[str, ...] = ("tokenizer", "postprocess", "ensemble")
    """The further Triton models of a package, such as the tokenizer, by their names in `package.triton.models`."""
    example: tuple[str, ...] = ("A fine day.",)
    """The texts of an example request to a package for the task.

    In an example text, `[MASK]` stands for the model's own mask token.
    """
    answer_options: tuple[str, ...] = ()
    """The options under `package.answers` of a recipe that the task follows."""
    answers: str | None = None
    """The name of the module that makes the postprocessing; None where clients get the outputs unchanged.

    The module has a function `make(signature, checkpoint, text)`, as the modules in `engine/kit/triton/answers` have.
    The argument `text` is the tokenizer, or None for a model that takes no text.
    """

    @property
    def paired(self) -> bool:
        """Whether each row of the input TEXT has two texts."""
        return self.texts == _PAIR

    @property
    def takes_images(self) -> bool:
        """Whether each row of the input has an image."""
        return self.modality in (Modality.IMAGE, Modality.IMAGE_AND_TEXTS)

    @property
    def takes_texts(self) -> bool:
        """Whether each row of the input has texts, alone or beside an image."""
        return self.modality in (Modality.TEXT, Modality.IMAGE_AND_TEXTS)

    @property
    def takes_only_texts(self) -> bool:
        """Whether each row of the input has texts and nothing else."""
        return self.modality is Modality.TEXT


TENSORS = Task(name="tensors", modality=Modality.TENSORS, parts=())
"""The task of a plain ONNX file where the recipe names no task. `tensors` is not a value of `task:` in recipes."""


def input_word(task: Task | None, *, images: bool) -> str:
    """Return the word for what clients send to a package, as in the name of its entry: `text`, `image`, ...

    `images` tells for a recipe without a task whether the model takes images.
    """
    modality = (Modality.IMAGE if images else Modality.TEXT) if task is None else task.modality
    return str(modality.value)
