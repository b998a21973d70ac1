"""Vectors: one embedding for each sentence, as sentence-transformers makes it."""

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
    """Return the postprocessing that turns hidden states [rows, tokens, hidden] into one vector for each row.

    Returns None for a checkpoint without the modules of sentence-transformers. Raises Unfit for a model without hidden
    states, and UnsupportedModules for a pooling that recipe does not support.
    """
    modules = sentences.load(checkpoint)
    if modules is None:
        return None
    if embedding.NAME in signature.outputs:
        return Answer(None, (), (), (embedding.NAME,), {})
    states, names = answer.output(signature, embedding.STATES, axes=3)
    width = states.shape[-1]
    size = width * len(modules.modes) if isinstance(width, int) else -1
    gives = (AnswerTensor(embedding.NAME, "TYPE_FP32", (size,)),)
    settings = {"modes": list(modules.modes), "normalise": modules.normalize}
    takes = (embedding.STATES, embedding.MASK)
    return Answer(served.EMBED, takes, gives, (embedding.NAME,), settings, names)
