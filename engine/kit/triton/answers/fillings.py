"""Fillings: the most likely words for each mask in a text."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from engine.kit.checkpoints import json_files
from engine.kit.inputs.tokenizer import special_token
from engine.kit.triton import served
from engine.kit.triton.answers import scores
from engine.kit.triton.parts import MASK
from engine.tasks import answer
from engine.tasks.answer import Answer, AnswerTensor

if TYPE_CHECKING:
    from engine.kit.triton.config import Signature
    from engine.kit.triton.text import ServedTokenizer

_COUNT = 5
"""The number of words for each mask: the default of `top_k` in the fill-mask pipeline of transformers."""
_MASKS = ("[MASK]", "<mask>")
"""Mask tokens of common tokenizers, for checkpoints whose tokenizer_config.json names no mask token."""


def make(signature: Signature, checkpoint: Path, text: ServedTokenizer) -> Answer:
    """Return the postprocessing that turns logits [rows, tokens, vocabulary] into words for each mask.

    Raises Unfit for a model without logits of three axes, and for a tokenizer without a mask token.
    """
    logits, names = answer.output(signature, "logits", axes=3)
    scores.refuse_activated(checkpoint, logits.name, axes=3)
    backend = text.tokenizer.backend
    mask = _mask(checkpoint, backend)
    size = answer.vocabulary(backend)
    count = min(_COUNT, logits.shape[-1] if isinstance(logits.shape[-1], int) else size)
    words = [backend.decode([number], skip_special_tokens=False) for number in range(size)]
    kinds = {"tokens": "TYPE_STRING", "token_ids": "TYPE_INT64", "scores": "TYPE_FP32"}
    gives = tuple(AnswerTensor(name, kind, (-1, count)) for name, kind in kinds.items())
    return Answer(
        served.FILL, ("logits", "input_ids"), gives, tuple(kinds), {"mask": mask, "count": count}, names,
        {"vocabulary.json": answer.as_json(words)}, {MASK: backend.id_to_token(mask)},
    )  # fmt: skip


def _mask(checkpoint: Path, backend: Any) -> int:
    """Return the id of the tokenizer's mask token. Raises answer.Unfit for a tokenizer without a mask token."""
    own = special_token(json_files.settings(checkpoint / "tokenizer_config.json"), "mask_token")
    numbers = (backend.token_to_id(token) for token in (own, *_MASKS) if isinstance(token, str))
    for number in numbers:
        if number is not None:
            return int(number)
    raise answer.Unfit("its tokenizer has no token for a mask")
