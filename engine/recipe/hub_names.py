"""Hub names: recognizes a model of the Hugging Face hub in a source that was written without `hf:`."""

from __future__ import annotations

import re

from engine.recipe.text import shown

OF_TIMM = ("timm:", "hf:timm/")
"""How a source begins that names one of timm's repositories on the hub."""
_NAME = r"(?:(?:https?:)?(?://)?(?:www\.)?(?:huggingface\.co|hf\.co)/)?([A-Za-z0-9][\w.-]*(/[A-Za-z0-9][\w.-]*)?)/?"
"""OWNER/NAME, or the NAME of an old model, alone or behind the hub's address."""
_FILES = (".onnx", ".bin", ".pt", ".pth", ".safetensors", ".gguf", ".yaml", ".yml", ".json")


def hint(source: str) -> str:
    """Return how a recipe names the model of the hub that `source` may mean; "" where `source` looks like no model."""
    plain, sign, revision = source.partition("@")
    name = re.fullmatch(_NAME, plain)
    if name is None or name[1].endswith(_FILES):
        return ""
    pinned = f" with `revision: {shown(revision)}`" if sign else ""
    return f"a model of the Hugging Face hub is `hf:{shown(name[1])}`{pinned}"
