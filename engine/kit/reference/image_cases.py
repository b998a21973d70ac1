"""Image cases: image files become a model's inputs, alone and in batches as a server joins them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from engine import digest
from engine.errors import StepError
from engine.kit.checkpoints import labels
from engine.kit.images import settings
from engine.kit.images.preparation import Preparation
from engine.kit.inputs import image_samples, samples, tensor_samples, token_rows
from engine.kit.inputs import tokenizer as tokenizers
from engine.kit.inputs.cases import Case
from engine.kit.inputs.image_samples import SampleImage
from engine.kit.inputs.token_rows import RowLimits
from engine.kit.inputs.tokenizer import Tokenizer
from engine.kit.onnx.onnx_files import Input
from engine.kit.reference import batches, own_processor
from engine.kit.reference.own_processor import OwnProcessor

if TYPE_CHECKING:
    import numpy as np

TOOLS = ("pillow", "numpy")
"""The distributions that turn image files into tensors."""
_TOKENS, _MASK = "input_ids", "attention_mask"
_ROUNDING = 1.01
"""The part of a difference in 32-bit numbers that is rounding."""


@dataclass(frozen=True)
class ImageInputs:
    """What makes the inputs of a model from image files, and from the texts beside each."""

    specs: Mapping[str, Input]
    preparation: Preparation
    tokenizer: Tokenizer | None
    """The tokenizer of the texts; None for a model that takes images alone."""
    own: OwnProcessor | None = None

    @classmethod
    def of(
        cls, checkpoint: Path, specs: Mapping[str, Input], preprocess: Mapping[str, Any], *, is_original: bool = False
    ) -> ImageInputs | None:
        """Return what makes a model's inputs; None where nothing says how images are prepared.

        With `is_original`, the checkpoint's own processor makes them, too, unless the recipe replaces a part of it.
        """
        chosen = settings.of_checkpoint(checkpoint, specs, preprocess)
        if chosen is None:
            return None
        tokenizer = None
        if _TOKENS in specs:
            sequence = specs[_TOKENS].shape[-1]
            tokenizer = tokenizers.load(checkpoint, longest=sequence if isinstance(sequence, int) else None)
            if tokenizer is None:
                raise samples.no_tokenizer()
        own = own_processor.load(checkpoint) if is_original and not preprocess else None
        return cls(specs, Preparation(chosen), tokenizer, own)

    def case(self, images: Sequence[SampleImage], **fields: Any) -> Case:
        """Return the case of images in one batch; they have the same texts.

        Raises StepError for a file that is no image, and where the checkpoint's own processor makes other tensors.
        """
        files = [image.content() for image in images]
        rows = self.specs[self.preparation.settings["output"]].shape[0]
        if isinstance(rows, int) and len(files) == 1:
            files *= rows
        try:
            inputs = self.preparation.tensors(files)
        except ValueError as error:
            raise images[0].unfit(error) from error
        inputs |= self._tokens(images[0].texts, len(files))
        lacking = [spec for name, spec in self.specs.items() if name not in inputs]
        if lacking:
            facts = [f"it takes {tensor_samples.describe(spec)}" for spec in lacking]
            raise StepError("the samples are images, and the model takes more", facts, "give samples as .npz")
        own = self._own(files, images, inputs)
        return Case(inputs=inputs, outputs={}, own_inputs=own, **fields)

    def _tokens(self, texts: Sequence[str], rows: int) -> dict[str, np.ndarray]:
        """Return the tokens of the same texts for each row, int64 [rows, texts, tokens].

        A model that takes no mask is trained on texts that are padded to its greatest length.
        """
        import numpy as np

        if self.tokenizer is None:
            return {}
        if not texts:
            raise StepError(
                "the model compares images with texts, and the samples name none", hint='{"image", "texts"}'
            )
        size = self.specs[_TOKENS].shape[-1]
        length = size if isinstance(size, int) else 0 if _MASK in self.specs else self.tokenizer.longest or 0
        tokens = [self.tokenizer.row(text) for text in texts]
        made = token_rows.batch(tokens, pad=self.tokenizer.pad, side=self.tokenizer.side, length=length)
        return {name: np.repeat(made[name][None], rows, axis=0) for name in self.specs if name in made}

    def _own(
        self, files: Sequence[bytes], images: Sequence[SampleImage], inputs: Mapping[str, np.ndarray]
    ) -> dict[str, np.ndarray] | None:
        """Return what the checkpoint's own processor makes. Raises StepError where it differs from `inputs`."""
        import numpy as np

        if self.own is None:
            return None
        longest = None if self.tokenizer is None else self.tokenizer.longest
        every = self.own.inputs(files, images[0].texts, is_masked=_MASK in self.specs, longest=longest)
        own = {}
        for name, theirs in every.items():
            if name not in inputs:
                continue
            ours = inputs[name][0] if name in token_rows.NAMES else inputs[name]
            _refuse_other(self, images, name, theirs, ours)
            own[name] = ours if np.array_equal(ours, theirs) else theirs
        return own


def _refuse_other(
    maker: ImageInputs, images: Sequence[SampleImage], name: str, theirs: np.ndarray, ours: np.ndarray
) -> None:
    """Raise StepError where a tensor differs from the own processor's by more than one of the 256 values of a pixel."""
    import numpy as np

    steps = np.diff(maker.preparation.values.astype(np.float64), axis=1)
    most = float(np.abs(steps).max()) * _ROUNDING if theirs.dtype.kind == "f" else 0
    if theirs.shape == ours.shape:
        difference = float(np.abs(theirs.astype(np.float64) - ours).max(initial=0))
        if difference <= most:
            return
        facts = [f"the greatest difference is {difference:.4g}, and one of 255 steps of a pixel is {most:.4g}"]
    else:
        facts = [f"{who}: {list(shape)}" for who, shape in (("transformers", theirs.shape), ("here", ours.shape))]
    raise StepError(
        f"the files of the checkpoint do not do what transformers does with them: {name} differs",
        [f"of {', '.join(image.name for image in images)}, by {maker.own.kind if maker.own else ''}", *facts],
        "preprocess: in the recipe replaces what the checkpoint's files say",
    )


def samples_of(maker: ImageInputs, path: Path | None, texts: Sequence[str], *, seed: int = 0) -> list[SampleImage]:
    """Return the images of samples, or without samples images that need no files.

    `texts` stand beside each image whose sample names none, if the model takes texts.
    """
    own = texts if maker.tokenizer is not None else ()
    return image_samples.built_in(own, seed=seed) if path is None else image_samples.read(path, own)


def of_samples(
    maker: ImageInputs,
    images: Sequence[SampleImage],
    checkpoint: Path,
    names: Sequence[str] = (),
    *,
    keep: Callable[[Case], Case] = lambda case: case,
) -> list[Case]:
    """Return a case without outputs for each image; `names` are those of the classes where no file has them.

    `keep` moves a case out of memory.
    """
    classes = {name: number for number, name in enumerate(names)} or labels.numbers(checkpoint)
    cases = []
    for image in images:
        shown = " | ".join((image.shown, *image.texts))
        label, file = image_samples.label_of(image, classes), str(digest.of_bytes(image.content()))
        cases.append(keep(maker.case([image], name=image.name, text=shown, kind="sample", label=label, file=file)))
    return cases


def joined(maker: ImageInputs, images: Sequence[SampleImage], cases: Sequence[Case]) -> Iterator[Case]:
    """Yield batches of images whose tensors have one shape, or with a mask for padding also of different shapes.

    `cases` are those of the images alone. Nothing is yielded for a model with a fixed number of rows.
    """
    output = maker.preparation.settings["output"]
    if isinstance(maker.specs[output].shape[0], int):
        return
    same: dict[object, list[int]] = {}
    for index, (image, case) in enumerate(zip(images, cases, strict=True)):
        shape = None if maker.preparation.settings["mask"] else case.inputs[output].shape
        same.setdefault((image.texts, shape), []).append(index)
    several = [alike for alike in same.values() if len(alike) > 1] or list(same.values())[:1]
    groups = [
        [alike[place] for place in group] for alike in several for group in batches.grouped(len(alike), RowLimits())
    ]
    for number, group in enumerate(groups, 1):
        text = ", ".join(images[index].name for index in group)
        yield maker.case([images[index] for index in group], name=f"batch {number}", text=text, kind="batched")
