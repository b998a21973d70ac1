"""Own processor: the checkpoint's image processor and tokenizer, as a user of transformers calls them."""

from __future__ import annotations

import io
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from engine.errors import StepError
from engine.kit.checkpoints import checkpoint as checkpoints
from engine.kit.reference import own_tokenizer
from engine.kit.reference.own_tokenizer import OwnTokenizer
from engine.text import reasons

if TYPE_CHECKING:
    import numpy as np

_FILES = ("preprocessor_config.json", "processor_config.json")


@dataclass(frozen=True)
class OwnProcessor:
    """An image processor of transformers, and the tokenizer beside it; None for a checkpoint without one."""

    processor: Any
    tokenizer: OwnTokenizer | None

    @property
    def kind(self) -> str:
        """The name of the image processor's class."""
        return type(self.processor).__name__

    def inputs(
        self, files: Sequence[bytes], texts: Sequence[str], *, is_masked: bool, longest: int | None
    ) -> dict[str, np.ndarray]:
        """Return what a user gives the model for a batch of image files and for texts: `model(**processor(...))`.

        Texts are padded to the longest; for a model that takes no mask of them, to `longest` tokens.
        """
        from PIL import Image
        from transformers.image_utils import load_image

        images = [load_image(Image.open(io.BytesIO(file))) for file in files]
        inputs = dict(self.processor(images, return_tensors="np"))
        if texts and self.tokenizer is not None:
            padding = True if is_masked else "max_length"
            cut = {} if longest is None else {"truncation": True, "max_length": longest}
            encoded = self.tokenizer.tokenizer(list(texts), padding=padding, return_tensors="np", **cut)
            inputs |= {name: array.astype("int64") for name, array in encoded.items()}
        return inputs


def load(checkpoint: Path) -> OwnProcessor | None:
    """Return the checkpoint's own processor; None for a model of timm, an ONNX file, and a checkpoint without one.

    transformers has two image processors for each class. The one of Pillow is the reference, because the one of
    torchvision differs from it by up to 2 of 255. Raises StepError where transformers cannot load it.
    """
    if checkpoints.kind(checkpoint) != "transformers" or not any((checkpoint / name).is_file() for name in _FILES):
        return None
    checkpoints.refuse_own_code(checkpoint)
    import transformers

    try:
        processor = transformers.AutoImageProcessor.from_pretrained(
            str(checkpoint), backend="pil", local_files_only=True, trust_remote_code=False
        )
    except Exception as error:  # transformers raises whatever its classes do
        raise StepError(
            "the checkpoint's own image processor cannot be loaded",
            reasons.facts(error, without=f"{checkpoint}/"),
            "mend preprocessor_config.json, or save the image processor again with save_pretrained()",
        ) from error
    return OwnProcessor(processor, own_tokenizer.load(checkpoint))
