"""Answers: what is made of a model's outputs before a client sees them, by its task."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from engine.kit.checkpoints import json_files, labels, sentences
from engine.kit.triton import embedding, served
from engine.kit.triton.parts import Tensor

if TYPE_CHECKING:
    from engine.kit.onnx.onnx_files import Input
    from engine.kit.triton.config import Signature
    from engine.kit.triton.text import Text

_LONGEST_ANSWER = 15
"""Tokens; `max_answer_len` of the question-answering pipeline of transformers."""
_FILLINGS = 5
"""Words for each mask; `top_k` of the fill-mask pipeline of transformers."""
MASK = "recipe_mask"
"""The parameter of a configuration that says how a word to be filled in is written."""
_MASKS = ("[MASK]", "<mask>")


@dataclass(frozen=True)
class Answer:
    """The work that makes an answer, what it takes and gives, and what clients get."""

    work: str | None
    """The served file that does it; None where the model itself has done it."""
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


class _Unfit(Exception):  # noqa: N818 - a reason to say
    """Why a model's outputs are no answer to its task."""


def of(task: str, signature: Signature, checkpoint: Path, text: Text | None) -> Answer | None:
    """Return what is made of the outputs of a model for a task; None where they are what clients get.

    Where a task is known and its answer cannot be made, the log says why.
    """
    make = _MAKERS.get(task)
    if make is None or (text is None and task not in _WITHOUT_TEXT):
        return None
    try:
        return make(signature, checkpoint, text)
    except (_Unfit, sentences.Unsupported) as reason:
        print(f"the package gives the model's own outputs, no answers to {task}: {reason}")
        return None


def _classification(signature: Signature, checkpoint: Path, _: Text | None) -> Answer:
    logits, names = _found(signature, "logits", axes=2)
    classes = _extent(logits)
    settings = {"labels": labels.names(checkpoint, classes), "scores": labels.score(checkpoint, classes)}
    gives = (Tensor("labels", "TYPE_STRING", (classes,)), Tensor("scores", "TYPE_FP32", (classes,)))
    return Answer(served.CLASSIFY, ("logits",), gives, ("logits", "labels", "scores"), settings, names)


def _tags(signature: Signature, checkpoint: Path, text: Text) -> Answer:
    logits, names = _found(signature, "logits", axes=3)
    settings = {"labels": labels.names(checkpoint, _extent(logits))}
    gives = (
        Tensor("labels", "TYPE_STRING", (-1,)),
        Tensor("scores", "TYPE_FP32", (-1,)),
        Tensor("tokens", "TYPE_STRING", (-1,)),
    )
    backend = text.tokeniser.backend
    tokens = [backend.id_to_token(number) or "" for number in range(_vocabulary(backend))]
    return Answer(
        served.TAG, ("logits", "input_ids", "attention_mask"), gives,
        ("logits", "labels", "scores", "tokens", "offsets"), settings, names, {"vocabulary.json": _json(tokens)},
    )  # fmt: skip


def _span(signature: Signature, _: Path, __: Text) -> Answer:
    for name in ("start_logits", "end_logits"):
        _found(signature, name, axes=2, alone=False)
    gives = (
        Tensor("answer", "TYPE_STRING", (1,)),
        Tensor("score", "TYPE_FP32", (1,)),
        Tensor("start", "TYPE_INT64", (1,)),
        Tensor("end", "TYPE_INT64", (1,)),
    )
    outputs = ("answer", "score", "start", "end", "start_logits", "end_logits")
    takes = ("start_logits", "end_logits", "offsets", "TEXT")
    return Answer(served.ANSWER, takes, gives, outputs, {"longest": _LONGEST_ANSWER})


def _embedding(signature: Signature, checkpoint: Path, _: Text) -> Answer | None:
    found = sentences.load(checkpoint)
    if found is None:
        return None
    if embedding.NAME in signature.outputs:
        return Answer(None, (), (), (embedding.NAME,), {})
    states, names = _found(signature, embedding.STATES, axes=3)
    width = states.shape[-1]
    size = width * len(found.modes) if isinstance(width, int) else -1
    gives = (Tensor(embedding.NAME, "TYPE_FP32", (size,)),)
    settings = {"modes": list(found.modes), "normalise": found.normalise}
    takes = (embedding.STATES, embedding.MASK)
    return Answer(served.EMBED, takes, gives, (embedding.NAME,), settings, names)


def _fillings(signature: Signature, checkpoint: Path, text: Text) -> Answer:
    logits, names = _found(signature, "logits", axes=3)
    backend = text.tokeniser.backend
    mask = _mask(checkpoint, backend)
    size = _vocabulary(backend)
    count = min(_FILLINGS, logits.shape[-1] if isinstance(logits.shape[-1], int) else size)
    words = [backend.decode([number], skip_special_tokens=False) for number in range(size)]
    kinds = {"tokens": "TYPE_STRING", "token_ids": "TYPE_INT64", "scores": "TYPE_FP32"}
    gives = tuple(Tensor(name, kind, (-1, count)) for name, kind in kinds.items())
    return Answer(
        served.FILL, ("logits", "input_ids"), gives, tuple(kinds), {"mask": mask, "count": count}, names,
        {"vocabulary.json": _json(words)}, {MASK: backend.id_to_token(mask)},
    )  # fmt: skip


_MAKERS: Mapping[str, Callable[..., Answer | None]] = {
    "text-classification": _classification,
    "image-classification": _classification,
    "token-classification": _tags,
    "question-answering": _span,
    "feature-extraction": _embedding,
    "fill-mask": _fillings,
}
_WITHOUT_TEXT = ("image-classification",)


def _found(signature: Signature, name: str, *, axes: int, alone: bool = True) -> tuple[Input, dict[str, str]]:
    """Return the output of that name, or the only one there is, and its own name -> that name. Raises _Unfit."""
    every = signature.outputs
    chosen = every.get(name) or (next(iter(every.values())) if alone and len(every) == 1 else None)
    if chosen is None:
        raise _Unfit(f"it has no output {name}, but {', '.join(every)}")
    if len(chosen.shape) != axes or not chosen.dtype.startswith(("float", "bfloat")):
        raise _Unfit(f"its output {chosen.name} is {chosen.dtype} of {len(chosen.shape)} axes, not a float of {axes}")
    return chosen, {} if chosen.name == name else {chosen.name: name}


def _extent(logits: Input) -> int:
    classes = logits.shape[-1]
    if not isinstance(classes, int):
        raise _Unfit(f"how many classes it tells apart is not known: {logits.name} ends with {classes}")
    return classes


def _mask(checkpoint: Path, backend: Any) -> int:
    """Return the id of the token that stands for a word to fill in. Raises _Unfit where there is none."""
    said = json_files.settings(checkpoint / "tokenizer_config.json").get("mask_token")
    said = said.get("content") if isinstance(said, dict) else said
    found = (backend.token_to_id(token) for token in (said, *_MASKS) if isinstance(token, str))
    for number in found:
        if number is not None:
            return int(number)
    raise _Unfit("its tokenizer has no token for a mask")


def _vocabulary(backend: Any) -> int:
    """Return one more than the largest id."""
    return 1 + max(map(int, backend.get_vocab(with_added_tokens=True).values()))


def _json(texts: list[str]) -> bytes:
    return json.dumps(texts, ensure_ascii=False).encode("utf-8")
