"""Own processor: the checkpoint's image processor and tokenizer, as a user of transformers calls them."""

from __future__ import annotations

import io
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from engine.errors import StepError
from engine.kit.checkpoints import checkpoint as checkpoints
from engine.kit.reference import own_tokenizer
from engine.kit.reference.own_tokenizer import OwnTokenizer
from engine.text import reasons

if TYPE_CHECKING:
    import numpy as np


class OwnProcessor(NamedTuple):
    """An image processor of transformers, and the tokenizer for a model that also takes texts."""

    processor: Any
    tokenizer: OwnTokenizer | None

    def inputs(self, files: Sequence[bytes], texts: Sequence[str], **padding: Any) -> dict[str, np.ndarray]:
        """Return what a user gives the model for image files and texts, which the tokenizer pads as `padding` says."""
        from PIL import Image
        from transformers.image_utils import load_image

        images = [load_image(Image.open(io.BytesIO(file))) for file in files]
        inputs = dict(self.processor(images, return_tensors="np"))
        if texts and self.tokenizer is not None:
            tokens = self.tokenizer.tokenizer(list(texts), return_tensors="np", truncation=True, **padding)
            inputs |= {name: array.astype("int64") for name, array in tokens.items()}
        return inputs


def load(checkpoint: Path, *, takes_texts: bool = False) -> OwnProcessor | None:
    """Return the checkpoint's own processor; None for a model of timm and for an ONNX file.

    transformers has two image processors for each class. The one of Pillow is the reference, because the one of
    torchvision differs from it by up to 2 of 255. Raises StepError where transformers cannot load it.
    """
    if checkpoints.kind(checkpoint) != "transformers":
        return None
    checkpoints.refuse_own_code(checkpoint)
    import transformers

    try:
        processor = transformers.AutoImageProcessor.from_pretrained(
            str(checkpoint), backend="pil", local_files_only=True, trust_remote_code=False
        )
    except Exception as error:  # transformers raises whatever its classes do
        facts, hint = reasons.facts(error, without=f"{checkpoint}/"), "save the image processor with save_pretrained()"
        raise StepError("the checkpoint's own image processor cannot be loaded", facts, hint) from error
    return OwnProcessor(processor, own_tokenizer.load(checkpoint) if takes_texts else None)
