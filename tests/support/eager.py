"""The answers of a checkpoint in PyTorch with attention in its plain form, in float32."""

from __future__ import annotations

import inspect
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

import numpy as np
from attention_masks import Masked


def answers(checkpoint: Path, masks: Iterable[Masked]) -> Iterator[tuple[Masked, np.ndarray]]:
    """Yield each mask and the checkpoint's last hidden state [batch, sequence, hidden] for the inputs with the mask."""
    import torch
    import transformers

    model = transformers.AutoModel.from_pretrained(checkpoint, attn_implementation="eager").eval()
    names = inspect.signature(model.forward).parameters
    with torch.no_grad():
        for masked in masks:
            inputs = {name: torch.from_numpy(array) for name, array in read_by(names, masked.inputs).items()}
            yield masked, model(**inputs).last_hidden_state.numpy()


def read_by(names: Iterable[str], inputs: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
    """Return the inputs that a model with these names of inputs reads."""
    return {name: array for name, array in inputs.items() if name in set(names)}
