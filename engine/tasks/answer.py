"""Answer: what makes an answer of a model's outputs, and what the makers of answers share."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from engine.kit.onnx.onnx_files import Input
    from engine.kit.triton.config import Signature


@dataclass(frozen=True)
class Tensor:
    """A tensor between the parts: its name, Triton's name of its type, and its extents within a row; -1 is any."""

    name: str
    type: str
    dims: tuple[int, ...]


@dataclass(frozen=True)
class Answer:
    """The work that makes an answer, what it takes and gives, and what clients get."""

    work: str | None
    """The file that does it, one of the served ones or one of `files`; None where the model itself has done it."""
    takes: tuple[str, ...]
    gives: tuple[Tensor, ...]
    outputs: tuple[str, ...]
    """What clients get: some are the tokenizer's own, and need not pass through."""
    settings: Mapping[str, Any]
    names: Mapping[str, str] = field(default_factory=dict)
    """What this calls those outputs of the model that have another name."""
    files: Mapping[str, bytes] = field(default_factory=dict)
    parameters: Mapping[str, str] = field(default_factory=dict)
    """What clients are told of it in the configuration, beside the task."""


class Unfit(Exception):  # noqa: N818 - a reason to say
    """Why a model's outputs are no answer to its task."""


def found(signature: Signature, name: str, *, axes: int, alone: bool = True) -> tuple[Input, dict[str, str]]:
    """Return the output of that name, or the only one there is, and its own name -> that name. Raises Unfit."""
    every = signature.outputs
    chosen = every.get(name) or (next(iter(every.values())) if alone and len(every) == 1 else None)
    if chosen is None:
        raise Unfit(f"it has no output {name}, but {', '.join(every)}")
    if len(chosen.shape) != axes or not chosen.dtype.startswith(("float", "bfloat")):
        raise Unfit(f"its output {chosen.name} is {chosen.dtype} of {len(chosen.shape)} axes, not a float of {axes}")
    return chosen, {} if chosen.name == name else {chosen.name: name}


def extent(logits: Input) -> int:
    """Return how many classes the last axis of logits has. Raises Unfit where that is not known."""
    classes = logits.shape[-1]
    if not isinstance(classes, int):
        raise Unfit(f"how many classes it tells apart is not known: {logits.name} ends with {classes}")
    return classes


def vocabulary(backend: Any) -> int:
    """Return one more than the largest id."""
    return 1 + max(map(int, backend.get_vocab(with_added_tokens=True).values()))


def as_json(texts: list[str]) -> bytes:
    """Return texts as a file of JSON that the served code reads."""
    return json.dumps(texts, ensure_ascii=False).encode("utf-8")
