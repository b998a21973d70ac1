"""Hints that several rooms give: what to do about a file that this program does not read."""

from __future__ import annotations

FROM_GGUF = (
    "GGUF is not read: load the file with transformers and the package gguf, from_pretrained(DIRECTORY, "
    "gguf_file=NAME), save model and tokenizer with save_pretrained(), and name the new directory"
)
"""The hint for a model in the format GGUF."""
