"""Vectors: the one embedding of a sentence, as sentence-transformers makes it."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from engine.kit.checkpoints import sentences
from engine.kit.triton import embedding, served
from engine.tasks import answer
from engine.tasks.answer import Answer, AnswerTensor

if TYPE_CHECKING:
    from engine.kit.triton.config import Signature
    from engine.kit.triton.text import ServedTokenizer


def make(signature: Signature, checkpoint: Path, _: ServedTokenizer) -> Answer | None:
    """Return what makes a vector of hidden states; None where the checkpoint does not say how. Raises Unfit."""
    found = sentences.load(checkpoint)
    if found is None:
        return None
    if embedding.NAME in signature.outputs:
        return Answer(None, (), (), (embedding.NAME,), {})
    states, names = answer.output(signature, embedding.STATES, axes=3)
    width = states.shape[-1]
    size = width * len(found.modes) if isinstance(width, int) else -1
    gives = (AnswerTensor(embedding.NAME, "TYPE_FP32", (size,)),)
    settings = {"modes": list(found.modes), "normalise": found.normalize}
    takes = (embedding.STATES, embedding.MASK)
    return Answer(served.EMBED, takes, gives, (embedding.NAME,), settings, names)
