"""Texts as a model takes them: in tokens of a checkpoint's tokenizer, padded to the longest text."""

import numpy as np

from engine.kit.inputs import tokenizer as tokenizers


def inputs(checkpoint, texts):
    """Return the tensors of a batch of texts, by name."""
    tokenizer = tokenizers.load(checkpoint, longest=128)
    rows = [tokenizer.row(text) for text in texts]
    longest = max(row["input_ids"].shape[1] for row in rows)
    return {
        name: np.concatenate([np.pad(row[name], ((0, 0), (0, longest - row[name].shape[1]))) for row in rows])
        for name in rows[0]
    }
