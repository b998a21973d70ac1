"""Vectors: one embedding for each sentence, as sentence-transformers makes it."""

from __future__ import annotations

import io
from pathlib import Path
from typing import TYPE_CHECKING

from engine.kit.checkpoints import sentences, weights
from engine.kit.inputs import tokenizer as tokenizers
from engine.kit.triton import embedding, served
from engine.tasks import answer
from engine.tasks.answer import Answer, AnswerTensor

if TYPE_CHECKING:
    from engine.kit.triton.config import Signature
    from engine.kit.triton.text import ServedTokenizer


def make(signature: Signature, checkpoint: Path, text: ServedTokenizer) -> Answer | None:
    """Return the postprocessing that turns hidden states [rows, tokens, hidden] into one vector for each row.

    Returns None for a checkpoint without the modules of sentence-transformers. Raises Unfit for a model without hidden
    states, and StepError for modules that are not supported.
    """
    import numpy as np

    modules = sentences.load(checkpoint)
    if modules is None:
        return None
    if embedding.NAME in signature.outputs:
        return Answer(None, (), (), (embedding.NAME,), {})
    states, names = answer.output(signature, embedding.STATES, axes=3)
    arrays: dict[str, np.ndarray] = {}
    layers = []
    width = states.shape[-1]
    size = width * len(modules.modes) if isinstance(width, int) else -1
    for number, layer in enumerate(modules.layers):
        layers.append({"kind": layer.kind, "activation": layer.activation, "residual": layer.residual})
        read = weights.arrays(checkpoint / layer.folder / "model.safetensors") if layer.folder else {}
        arrays |= {f"{number}.{name}": array for name, array in read.items()}
        size = len(read["linear.weight"]) if "linear.weight" in read else size
    if modules.truncate_dim is not None:
        size = min(size, modules.truncate_dim) if size > 0 else -1
    gives = (AnswerTensor(embedding.NAME, "TYPE_FP32", (size,)),)
    settings = {
        "modes": list(modules.modes),
        "layers": layers,
        "truncate_dim": modules.truncate_dim,
        "skip": tokenizers.prompt_tokens(checkpoint, text.tokenizer) if modules.skips_prompt else 0,
    }
    np.savez(content := io.BytesIO(), allow_pickle=False, **arrays)
    files = {"layers.npz": content.getvalue()} if arrays else {}
    takes = (embedding.STATES, embedding.MASK)
    return Answer(served.EMBED, takes, gives, (embedding.NAME,), settings, names, files)
