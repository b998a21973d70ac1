"""Calibration: a step that calibrates a model, and its inputs, which must not be cases of validation."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from engine.kit.checkpoints import checkpoint as checkpoints
from engine.kit.inputs import cases, image_samples, index_ranges, overlap, random_inputs, samples, token_rows
from engine.kit.inputs import tokenizer as tokenizers
from engine.kit.inputs.cases import Case
from engine.kit.inputs.token_rows import RowLimits
from engine.kit.onnx import onnx_files
from engine.kit.onnx.onnx_files import Input
from engine.kit.quantization import keep_in
from engine.kit.quantization.keep_in import NamedLayers
from engine.kit.reference import batches, image_cases, reference_cases
from engine.kit.reference.original_model import Original
from engine.recipe.image_input import Images
from engine.recipe.shape_values import Values
from engine.recipe.values import Profile
from engine.step import Source, Step

if TYPE_CHECKING:
    import onnx

    from engine.recipe.schema import Recipe

_SEED = 1921
"""The seed of random inputs for calibration. Random inputs for validation are drawn with a different seed."""
_DRAWN = 32
"""The number of drawn images on which a model without samples is calibrated."""
_FEW = 32
"""Upper limit of the number of cases on which half precision is tried, because every try runs all of these cases."""
_SHOWN = 60
"""The number of characters of a sample's text that an error message shows."""


class Calibrated(Step):
    """A step that calibrates a model: on the samples of the recipe, on built-in texts, or on random inputs."""

    samples: Source | None = None
    """The source of the samples for calibration, which the recipe names under `calibrate`."""
    own_texts: bool = False
    """Whether the model is calibrated on the built-in texts, because the recipe names no samples for calibration.

    Where validation compares models on the built-in texts, calibration does not use the built-in texts.
    """
    limit: int | None = None
    profiles: tuple[Profile, ...] = ()
    """The profiles of input shapes within which random inputs for calibration are drawn."""
    shape_values: tuple[Mapping[str, Values], ...] = ()
    """The values of inputs that these profiles state."""
    images: Images | None = None
    """The input of an image model that is calibrated on image files, of the samples or drawn here; else None."""
    preprocess: Mapping[str, Any] = {}
    """What the recipe says about the preparation of image files."""
    labels: tuple[str, ...] = ()
    """The texts with which a zero-shot classifier compares images."""
    keep_in: Mapping[str, tuple[str, ...]] = {}
    """The names of modules and nodes that stay in a higher precision, by this precision: "fp32" or "fp16"."""

    @classmethod
    def calibrating(cls, recipe: Recipe, *, draws: bool = True, **options: Any) -> Self:
        """Return the step with further options, and with those that a recipe gives to its calibration.

        `draws` tells whether the step draws inputs of its own where the recipe names no samples.
        """
        calibrate = recipe.calibrate
        images = recipe.images if draws or calibrate is not None else None
        draws = draws and calibrate is None
        return cls(
            images=images,
            preprocess={} if images is None else recipe.preprocess,
            labels=() if images is None else recipe.model.labels,
            samples=None if calibrate is None else Source(uri=calibrate.samples, part="samples"),
            own_texts=draws and recipe.validation.samples is not None,
            limit=None if calibrate is None else calibrate.limit,
            profiles=recipe.profiles if draws else (),
            shape_values=recipe.shape_values if draws else (),
            **options,
        )

    def options(self) -> Mapping[str, Any]:
        """Return the options that are rows of the key; some only where the recipe has them."""
        some = ("shape_values", "images", "preprocess", "labels", "keep_in")
        absent = {name for name in some if not getattr(self, name)}
        return {name: each for name, each in super().options().items() if name not in absent}

    def kept(self, original: Path | None, *precisions: str) -> NamedLayers:
        """Return what stays in one of the precisions, by its names in the graph of the folder `original`."""
        return keep_in.of([name for each in precisions for name in self.keep_in.get(each, ())], original)

    @property
    def reads_checkpoint(self) -> bool:
        """Whether calibration reads texts or images, which the files of the checkpoint turn into inputs."""
        return self.samples is not None or self.own_texts or self.images is not None

    @property
    def calibration_tools(self) -> tuple[str, ...]:
        """The packages that turn texts and images into inputs."""
        texts = ("tokenizers",) if self.reads_checkpoint else ()
        return texts if self.images is None else (*texts, *image_cases.TOOLS)

    def cases(self, graph: Path, checkpoint: Path | None, samples: Path | None) -> list[Case]:
        """Return the inputs that calibrate the ONNX model in the folder `graph`, as cases.

        Raises StepError where the samples do not suit the model, or where no inputs can be drawn.
        """
        model = onnx_files.load_graph(graph)
        inputs = onnx_files.inputs(model)
        images = checkpoint and image_cases.maker(self.images, checkpoint, inputs, self.preprocess, samples)
        if images and checkpoint is not None:
            if samples is None:
                print("no samples to calibrate on (`calibrate` in the recipe): drawn images instead")
            options: dict[str, Any] = {"limit": self.limit, "count": _DRAWN, "seed": _SEED}
            return [*image_cases.of_samples(images, samples, checkpoint, texts=self.labels, **options)]
        if samples is not None and checkpoint is not None:
            return from_file(samples, checkpoint, inputs, limit=self.limit)
        texts = of_our_own(checkpoint, inputs) if checkpoint is not None and self.own_texts else []
        instead = "the built-in texts" if texts else "random inputs within the profiles"
        print(f"no samples to calibrate on (`calibrate` in the recipe): {instead} instead")
        longest = None if checkpoint is None else checkpoints.max_sequence(checkpoint)
        return texts or drawn(model, self.profiles, self.shape_values, longest=longest)


def from_file(path: Path, checkpoint: Path, inputs: Mapping[str, Input], *, limit: int | None) -> list[Case]:
    """Return the first `limit` samples of a file, and batches of the file's texts with padding or holes in the mask.

    Raises StepError where the samples do not suit the model.
    """
    first = samples.read(path, checkpoint, inputs)[:limit]
    return first if path.suffix == ".npz" else padded(first, checkpoint, inputs)


def of_our_own(checkpoint: Path, inputs: Mapping[str, Input]) -> list[Case]:
    """Return the built-in texts, and batches of the texts with padding or holes in the mask.

    For a model whose inputs are not tokens, the returned list is empty.
    """
    if not token_rows.are_tokens(inputs) or tokenizers.load(checkpoint, longest=None) is None:
        return []
    return padded(samples.tokenize(samples.built_in(), checkpoint, inputs), checkpoint, inputs)


def padded(texts: list[Case], checkpoint: Path, inputs: Mapping[str, Input]) -> list[Case]:
    """Return `texts` and, if the checkpoint has a tokenizer, batches of the texts with padding or holes in the mask."""
    longest = checkpoints.max_sequence(checkpoint)
    tokenizer = tokenizers.load(checkpoint, longest=longest)
    if tokenizer is None:
        return texts
    return [*texts, *batches.masked(texts, inputs, pad=tokenizer.pad, limits=RowLimits.of(inputs, longest))]


def from_reference(directory: Path) -> list[Case]:
    """Return the cases in the directory of a reference, with the original model's outputs, without joined cases."""
    return _apart(cases.load(directory))


def drawn(
    graph: onnx.ModelProto,
    profiles: Sequence[Profile],
    values: Sequence[Mapping[str, Values]] = (),
    *,
    longest: int | None = None,
) -> list[Case]:
    """Return seeded random inputs within the profiles, of at most `longest` tokens.

    `values` are the values of inputs that the profiles state.

    Validation draws its random inputs with a different seed. Joined cases are left out. Raises StepError where no
    inputs can be drawn.
    """
    inputs, ranges = onnx_files.inputs(graph), index_ranges.of(graph)
    tokens = token_rows.are_tokens(inputs)
    vocabulary = random_inputs.vocabulary(inputs, ranges) if tokens else None
    original = Original("graph", inputs, lambda _: {}, ranges, vocabulary, longest)
    return _apart(reference_cases.drawn(original, profiles, values, seed=_SEED))


def some(every: Sequence[Case]) -> list[Case]:
    """Return at most 32 of the cases: up to 8 whose masks have padding or holes, the rest evenly from first to last."""
    masked = [case for case in every if case.kind.endswith(("padded", "holed"))]
    others = [case for case in every if case not in masked]
    few = _spread(masked, _FEW // 4)
    return [*_spread(others, _FEW - len(few)), *few]


def refuse_overlap(
    path: Path, checkpoint: Path, inputs: Mapping[str, Input], *, limit: int | None, reference: Path
) -> None:
    """Raise StepError where the samples for calibration and the cases of the reference have a sample in common."""
    if image_samples.are_images(path):
        overlap.refuse(overlap.images(path, limit, {case.file for case in cases.load(reference)}))
        return
    validated = {_identity(case) for case in cases.load(reference)}
    calibrated = samples.read(path, checkpoint, inputs)[:limit]
    both = [f"{case.name}: {case.text[:_SHOWN]!r}" for case in calibrated if _identity(case) in validated]
    overlap.refuse(both)


def _apart(every: Sequence[Case]) -> list[Case]:
    """Return the cases without joined cases, which are large batches of rows that other cases have, too."""
    return [case for case in every if case.kind not in cases.JOINED]


def _identity(case: Case) -> tuple[object, ...]:
    """Return a value that is equal for equal samples only: the text of a sample, or else the tensors of the sample.

    Tokens do not identify a text: a tokenizer gives all unknown words the same token.
    """
    if case.kind == "sample":
        return ("text", case.text)
    return tuple((name, array.shape, array.tobytes()) for name, array in sorted(case.inputs.items()))


def _spread(every: Sequence[Case], count: int) -> list[Case]:
    """Return `count` of the cases, evenly from the first to the last; all cases where there are fewer."""
    if len(every) <= count:
        return list(every)
    return [every[index * len(every) // count] for index in range(count)]
