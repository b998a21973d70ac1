"""Image cases: image files, and the texts beside each, become the inputs of a model."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from engine import digest
from engine.errors import StepError
from engine.kit.checkpoints import labels
from engine.kit.images import settings
from engine.kit.images.preparation import Preparation
from engine.kit.inputs import image_samples, samples, tensor_samples, token_rows
from engine.kit.inputs import tokenizer as tokenizers
from engine.kit.inputs.cases import Case
from engine.kit.inputs.image_samples import SampleImage
from engine.kit.inputs.tokenizer import Tokenizer
from engine.kit.onnx.onnx_files import Input
from engine.kit.reference import batches, own_processor
from engine.kit.reference.own_processor import OwnProcessor
from engine.recipe.image_input import Images

if TYPE_CHECKING:
    import numpy as np

TOOLS = ("pillow", "numpy")
"""The distributions that turn image files into tensors."""
_TOKENS, _MASK = "input_ids", "attention_mask"
_TEXTS = 4
"""The number of built-in texts with which an image is compared where the recipe names none."""
_ROUNDING = 1.01
"""The factor of a difference that rounding to 32 bits may add."""


class ImageInputs(NamedTuple):
    """What makes the inputs of a model from an image file and its texts."""

    specs: Mapping[str, Input]
    preparation: Preparation
    tokenizer: Tokenizer | None
    """The tokenizer of the texts; None for a model that takes images alone."""
    own: OwnProcessor | None
    """The checkpoint's own processor, whose tensors the original gets; None where the recipe replaces a part of it."""

    def tensors(self, image: SampleImage) -> tuple[dict[str, np.ndarray], dict[str, np.ndarray] | None]:
        """Return a model's inputs, and those inputs that a user's processor makes in other form; None without one.

        Raises StepError for a file that is no image, and where the processor makes other tensors.
        """
        import numpy as np

        rows = self.specs[self.preparation.settings["output"]].shape[0]
        files = [image.content()] * (rows if isinstance(rows, int) else 1)
        try:
            inputs = self.preparation.tensors(files)
        except ValueError as error:
            raise image.unfit(error) from error
        tokens, padding = self._tokens(image.texts)
        inputs |= {name: array[None].repeat(len(files), 0) for name, array in tokens.items()}
        if self.own is None:
            return inputs, None
        own = self.own.inputs(files, image.texts, **padding)
        for name in own.keys() & inputs.keys():
            self._refuse_other(image, name, own[name], tokens.get(name, inputs[name]))
        same = {name for name in inputs if name not in tokens and np.array_equal(own.get(name, []), inputs[name])}
        return inputs, {name: array for name, array in own.items() if name in inputs and name not in same}

    def _tokens(self, texts: Sequence[str]) -> tuple[dict[str, np.ndarray], dict[str, Any]]:
        """Return the tokens of texts, int64 [texts, tokens], and the options with which transformers pads them.

        They are padded to the greatest length for a model with this length, or trained without a mask.
        """
        if self.tokenizer is None:
            return {}, {}
        longest = self.tokenizer.longest
        is_full = _MASK not in self.specs or isinstance(self.specs[_TOKENS].shape[-1], int)
        rows, length = [self.tokenizer.row(text) for text in texts], longest if is_full else None
        batch = token_rows.batch(rows, pad=self.tokenizer.pad, side=self.tokenizer.side, length=length or 0)
        padding = {"padding": "max_length" if is_full else True, "max_length": longest}
        return {name: array for name, array in batch.items() if name in self.specs}, padding

    def _refuse_other(self, image: SampleImage, name: str, theirs: np.ndarray, ours: np.ndarray) -> None:
        """Raise StepError where a tensor is not the own processor's, up to one of the 255 steps of a pixel's value."""
        import numpy as np

        steps = np.abs(np.diff(self.preparation.values.astype(np.float64)))
        most = float(steps.max()) * _ROUNDING if theirs.dtype.kind == "f" else 0
        is_alike = theirs.shape == ours.shape
        difference = float(np.abs(theirs - ours.astype(np.float64)).max(initial=0)) if is_alike else np.inf
        if difference > most:
            raise StepError(
                f"the files of the checkpoint do not do what transformers does with them: {name} differs",
                [
                    f"of {image.name}: {list(theirs.shape)} by transformers, {list(ours.shape)} here",
                    f"the greatest difference is {difference:.4g}; one step of a pixel is {most:.4g}",
                ],
                "`preprocess` in the recipe replaces what the files say",
            )


def maker(
    images: Images | None,
    checkpoint: Path,
    specs: Mapping[str, Input],
    preprocess: Mapping[str, Any],
    path: Path | None,
    *,
    is_original: bool = False,
) -> ImageInputs | None:
    """Return what makes a model's inputs of the samples at `path`, or of drawn images where it is None.

    The result is None for a model or samples without images, and without samples where nothing says how images are
    prepared. `is_original` tells whether the original model gets the inputs. Raises StepError.
    """
    if images is None or (path is not None and not image_samples.are_images(path)):
        return None
    chosen = settings.of_checkpoint(checkpoint, specs, preprocess)
    if chosen is None and path is not None:
        raise image_samples.not_taken(*map(tensor_samples.describe, specs.values()))
    if chosen is None:
        return None
    tokenizer, size = None, specs[_TOKENS].shape[-1] if _TOKENS in specs else None
    if size is not None:
        tokenizer = tokenizers.load(checkpoint, longest=size if isinstance(size, int) else None)
        if tokenizer is None:
            raise samples.no_tokenizer()
    own = None
    if is_original and not preprocess:
        own = own_processor.load(checkpoint, takes_texts=tokenizer is not None)
    return ImageInputs(specs, Preparation(chosen), tokenizer, own)


def of_samples(
    inputs: ImageInputs,
    path: Path | None,
    checkpoint: Path,
    *,
    texts: Sequence[str] = (),
    limit: int | None = None,
    **drawn: Any,
) -> Iterator[Case]:
    """Yield a case without outputs for each of the first `limit` images, or for drawn images where `path` is None.

    `texts` stand beside each image whose line names none. Raises StepError.
    """
    texts = texts or [each.text for each in samples.built_in()[:_TEXTS]]
    texts = texts if inputs.tokenizer is not None else ()
    classes = labels.numbers(checkpoint)
    images = image_samples.drawn(texts, **drawn) if path is None else image_samples.read(path, texts)
    for image in images[:limit]:
        file, number = str(digest.of_bytes(image.content())), image.number(classes)
        shown = " | ".join((image.name if image.path is None else image.path.name, *image.texts))
        tensors, own = inputs.tensors(image)
        yield Case(image.name, shown, "sample", tensors, {}, number, own, file)


def ask(
    inputs: ImageInputs, path: Path | None, checkpoint: Path, texts: Sequence[str], *, keep: Callable[[Case], Case]
) -> list[Case]:
    """Return the cases of images alone and in batches, without outputs; `keep` moves each out of memory."""
    alone = [keep(case) for case in of_samples(inputs, path, checkpoint, texts=texts)]
    return [*alone, *map(keep, batches.of_tensors(alone, inputs.specs))]
