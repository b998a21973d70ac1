"""Tiny checkpoints whose own tokenizer decides what the model gets, and the answer of a user of transformers."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import models

TEXTS = ("the film was good", "bad plot, boring actor and a very slow train")
PAIRS = tuple((text, "where is the great city?") for text in TEXTS)


def xlnet(directory: Path, *, types: bool) -> Path:
    """Save an XLNet of three classes; with `types`, its tokenizer gives token types, 2 for the token <cls>."""
    import torch
    import transformers

    special = ("<unk>", "<s>", "</s>", "<cls>", "<sep>", "<pad>", "<mask>", "<eod>", "<eop>")
    marks = ((mark, -4.0) for mark in "▁abcdefghijklmnopqrstuvwxyz,.?")
    pieces = [*((token, 0.0) for token in special), *((f"▁{word}", -2.0) for word in models.WORDS), *marks]
    tokenizer = transformers.XLNetTokenizer(vocab=pieces)
    tokenizer.save_pretrained(directory)
    if types:
        settings(directory, model_input_names=["input_ids", "token_type_ids", "attention_mask"])
    torch.manual_seed(4)
    config = transformers.XLNetConfig(
        vocab_size=len(tokenizer), d_model=32, n_layer=2, n_head=4, d_inner=64, num_labels=3, pad_token_id=5
    )
    model = transformers.XLNetForSequenceClassification(config)
    models.sharpen(model)
    with torch.no_grad():
        for layer in model.transformer.layer:  # so that token types show in the logits
            layer.rel_attn.seg_embed.mul_(40)
    model.save_pretrained(directory)
    return directory


def settings(directory: Path, **changed: Any) -> None:
    """Change fields of tokenizer_config.json; a field of None is removed."""
    path = directory / "tokenizer_config.json"
    fields = {**json.loads(path.read_text()), **changed}
    path.write_text(json.dumps({name: value for name, value in fields.items() if value is not None}))


def users_logits(directory: Path, texts: Sequence[tuple[str, ...]]) -> list[Any]:
    """Return the logits that a user of transformers gets for each text or pair alone, [1, classes]."""
    import torch
    import transformers

    tokenizer = transformers.AutoTokenizer.from_pretrained(directory)
    model = transformers.AutoModelForSequenceClassification.from_pretrained(directory, attn_implementation="eager")
    with torch.inference_mode():
        return [model.eval()(**tokenizer(*text, return_tensors="pt")).logits.numpy() for text in texts]
