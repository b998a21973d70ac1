"""Lowercase: a setting of sentence-transformers that turns texts into lower case before the tokenizer reads them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from engine.kit.checkpoints import json_files


def apply(backend: Any, checkpoint: Path) -> None:
    """Have the tokenizer turn texts into lower case first, if the checkpoint's sentence-transformers config says so."""
    from tokenizers import normalizers

    if json_files.settings(checkpoint / "sentence_bert_config.json").get("do_lower_case"):
        own = [] if backend.normalizer is None else [backend.normalizer]
        backend.normalizer = normalizers.Sequence([normalizers.Lowercase(), *own])
