"""Answer: how the outputs of a model become the answer of its task, and helpers for modules that make answers."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from engine.kit.onnx.onnx_files import Input
    from engine.kit.triton.config import Signature


@dataclass(frozen=True)
class AnswerTensor:
    """A tensor that a Triton model of a package takes from or gives to another: its name, type and extents.

    `type` is Triton's name of the type of the tensor's elements, such as TYPE_FP32. `dims` are the extents of all axes
    after the batch axis; -1 stands for any extent.
    """

    name: str
    type: str
    dims: tuple[int, ...]


Tensor = AnswerTensor
"""The old name of `AnswerTensor`, which other Python packages may still use (docs/stability.md)."""


@dataclass(frozen=True)
class Answer:
    """The postprocessing of a task: its code, the tensors that it takes and gives, and the outputs for clients."""

    work: str | None
    """The name of the file with the postprocessing code, which is in `kit/triton/served` or in the field `files`.

    `work` is None where the graph of the model computes the answer itself.
    """
    takes: tuple[str, ...]
    """The tensors that the postprocessing reads: outputs of the model or of the tokenizer."""
    gives: tuple[AnswerTensor, ...]
    """The tensors that the postprocessing returns."""
    outputs: tuple[str, ...]
    """The outputs that clients get, which may include outputs of the tokenizer."""
    settings: Mapping[str, Any]
    """The settings of the postprocessing code, which the package holds as `settings.json`."""
    names: Mapping[str, str] = field(default_factory=dict)
    """A mapping from the model's name of an output to the postprocessing's name, where the two names differ."""
    files: Mapping[str, bytes] = field(default_factory=dict)
    """The name of each further file of the postprocessing -> the file's content."""
    parameters: Mapping[str, str] = field(default_factory=dict)
    """Parameters of the entry's `config.pbtxt` that clients read, in addition to the parameter with the task's name."""
    needs: tuple[str, ...] = ()
    """The Python packages, besides numpy, that the postprocessing code needs."""


class Unfit(Exception):  # noqa: N818 - a reason to say
    """The reason why a model's outputs do not suit the answer of the task."""


def output(signature: Signature, name: str, *, axes: int, alone: bool = True) -> tuple[Input, dict[str, str]]:
    """Return the model's output `name` and, for `Answer.names`, {its own name: `name`} or {} where both are equal.

    With `alone`, the only output of a model is returned even where it has another name than `name`. Raises Unfit where
    the model has no output `name`, or where the output does not hold floats or does not have `axes` axes.
    """
    outputs = signature.outputs
    chosen = outputs.get(name)
    if chosen is None and alone and len(outputs) == 1:
        [chosen] = outputs.values()
    if chosen is None:
        raise Unfit(f"it has no output {name}, but {', '.join(outputs)}")
    if len(chosen.shape) != axes or not chosen.dtype.startswith(("float", "bfloat")):
        raise Unfit(f"its output {chosen.name} is {chosen.dtype} of {len(chosen.shape)} axes, not a float of {axes}")
    return chosen, {} if chosen.name == name else {chosen.name: name}


def __getattr__(name: str) -> object:
    """Return `output` for its old name `found`, which other Python packages may still use (docs/stability.md)."""
    if name == "found":
        return output
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def extent(logits: Input) -> int:
    """Return the number of classes: the extent of the last axis of logits. Raises Unfit where it is dynamic."""
    classes = logits.shape[-1]
    if not isinstance(classes, int):
        raise Unfit(f"how many classes it tells apart is not known: {logits.name} ends with {classes}")
    return classes


def vocabulary(backend: Any) -> int:
    """Return the size of a tokenizer's vocabulary: its largest token id plus one."""
    return 1 + max(map(int, backend.get_vocab(with_added_tokens=True).values()))


def as_json(texts: list[str]) -> bytes:
    """Return texts as the bytes of a JSON file, for `Answer.files`."""
    return json.dumps(texts, ensure_ascii=False).encode("utf-8")
