"""Reference: what the original model answers, for validation to hold every later model against."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar, Literal, Self

from engine import tasks
from engine.errors import StepError
from engine.kit.checkpoints import checkpoint as checkpoints
from engine.kit.inputs import cases
from engine.kit.inputs.cases import Case
from engine.kit.reference import originals, questions
from engine.kit.reference.originals import Original
from engine.recipe import images
from engine.recipe.images import Images
from engine.recipe.schema import Profile
from engine.step import Source, Step, TypedReport
from engine.tasks import Modality

if TYPE_CHECKING:
    import numpy as np

    from engine.recipe.schema import Recipe

_PROGRESS = 100
"""Cases after which a long run says how far it is."""
_CLASSES_RANK = 2
"""Of the logits of classes: [batch, classes]."""
_ROUNDING = 1e-3
"""How far two answers of a model to one question may lie apart, as a share of the largest number in them."""


@dataclass(frozen=True, kw_only=True)
class ReferenceReport(TypedReport):
    """What the original was asked, and what it is."""

    cases: int
    kinds: Mapping[str, int]
    random: bool
    samples: Literal["file", "random", "built-in"]
    original: str


class Reference(Step):
    """Run the original in fp32: PyTorch for a checkpoint, ONNX Runtime without optimizations for an ONNX file.

    Every sample is run alone; samples of a text model are also run in batches that are padded on the right, padded on
    the left, and have a hole in the mask: what optimizers get wrong about masks shows there.
    """

    makes = "reference"
    report: ClassVar[type[TypedReport] | None] = ReferenceReport
    facts = ("cpu.isa",)

    samples: Source | None = None
    task: str | None = None
    num_labels: int | None = None
    random_head: bool = False
    onnx: bool = False
    images: Images | None = None
    """How images come to a model of timm."""
    profiles: tuple[Profile, ...] = ()

    @classmethod
    def for_recipe(cls, recipe: Recipe) -> Self:
        """Always wanted. Profiles only count where random tensors have to be drawn within them."""
        model, found = recipe.model, recipe.validation.samples
        onnx = model.source.lower().endswith(".onnx")
        shown = images.of_recipe(recipe)
        drawn = (onnx or shown is not None) and found is None and model.tokenizer is None
        return cls(
            samples=None if found is None else Source(uri=found),
            task=model.task,
            num_labels=model.num_labels,
            random_head=model.random_head,
            onnx=onnx,
            images=shown,
            profiles=recipe.profiles if drawn else (),
        )

    def code_used(self) -> tuple[str, ...]:
        """Return this module, and the task that the original is loaded and asked for."""
        return (*super().code_used(), *tasks.modules(self.task))

    def tools_used(self) -> tuple[str, ...]:
        """Return what runs the original and makes its inputs; numpy draws them where there are no samples."""
        if images.modality(self.images) is Modality.IMAGE:
            return ("torch", images.library(self.images), "numpy")
        runs = ("onnx", "onnxruntime") if self.onnx else ("torch", "transformers")
        return (*runs, "numpy", "tokenizers")

    def facts_used(self) -> tuple[str, ...]:
        """Return what chooses the kernels: the CPU's instructions, and the build of ONNX Runtime where it runs."""
        return (*self.facts, "onnxruntime.build") if self.onnx else self.facts

    def run(self, out: Path, *, checkpoint: Path, samples: Path | None = None) -> ReferenceReport:
        """Raises StepError where the model cannot be loaded, the samples do not suit it, or it fails on one of them."""
        task = checkpoints.task(checkpoint, self.task)
        print("loading the original model")
        with originals.load(
            checkpoint, task, num_labels=self.num_labels, random_head=self.random_head, images=self.images
        ) as original:
            asked = questions.ask(original, checkpoint, samples, task=task, profiles=self.profiles)
            kinds = cases.count_kinds(asked)
            listed = ", ".join(f"{count} {kind}" for kind, count in kinds.items())
            print(f"running {original.name} on {len(asked)} cases: {listed}")
            cases.save(list(_answered(original, asked)), out)
        drawn = "random" in kinds
        return ReferenceReport(
            cases=len(asked),
            kinds=kinds,
            random=drawn,
            samples="file" if samples is not None else "random" if drawn else "built-in",
            original=original.name,
        )


def _answered(original: Original, asked: Sequence[Case]) -> Iterator[Case]:
    import numpy as np

    for number, sample in enumerate(asked, 1):
        case = _completed(original, sample)
        outputs = _answer(original, case)
        if number == 1:
            _refuse_chance(original, case, outputs)
            _refuse_labels(asked, outputs)
        if not all(np.isfinite(output).all() for output in outputs.values() if output.dtype.kind == "f"):
            print(f"the original answers {case.name} with infinities or with what is no number")
        if number % _PROGRESS == 0:
            print(f"{number} of {len(asked)} cases")
        yield replace(case, outputs=outputs)


def _completed(original: Original, case: Case) -> Case:
    try:
        return replace(case, inputs=original.complete(case.inputs))
    except Exception as error:  # of PyTorch
        raise _failure(original, case, error) from error


def _answer(original: Original, case: Case) -> dict[str, np.ndarray]:
    try:
        return original.answer(case.inputs)
    except Exception as error:  # of PyTorch or ONNX Runtime, whichever runs
        raise _failure(original, case, error) from error


def _refuse_chance(original: Original, case: Case, first: Mapping[str, np.ndarray]) -> None:
    """Raise StepError where the same question gets another answer: then no built model could be told right or wrong."""
    again = _answer(original, case)
    other = [name for name, output in first.items() if not _same(output, again[name])]
    if other:
        raise StepError(
            f"the original model ({original.name}) is not deterministic: asked twice, it gives two answers",
            [f"to {case.name}, in: {', '.join(other)}"],
            "is Dropout still on, or does it draw random numbers? export it for inference, with noise as an input",
        )


def _same(first: np.ndarray, second: np.ndarray) -> bool:
    """Whether two answers differ by no more than rounding: where memory lies may change the order of a sum."""
    import numpy as np

    if first.shape != second.shape or first.dtype.kind != "f":
        return np.array_equal(first, second)
    largest = float(np.abs(first[np.isfinite(first)]).max(initial=0))
    return np.allclose(first, second, rtol=0, atol=_ROUNDING * largest, equal_nan=True)


def _refuse_labels(asked: Sequence[Case], outputs: Mapping[str, np.ndarray]) -> None:
    """Raise StepError for a sample whose label is none of the classes that the model tells apart."""
    logits = next(iter(outputs.values()))
    if logits.dtype.kind != "f" or logits.ndim != _CLASSES_RANK or logits.shape[1] == 1:
        return
    count = logits.shape[1]
    for case in asked:
        if case.label is not None and not 0 <= case.label < count:
            raise StepError(
                f"the label {case.label} of {case.name} is none of the model's classes",
                [f"it tells {count} apart: 0 to {count - 1}"],
            )


def _failure(original: Original, case: Case, error: Exception) -> StepError:
    if (beyond := _beyond(original, case)) is not None:
        return beyond
    shapes = [f"{name}: {tensor.dtype} {list(tensor.shape)}" for name, tensor in case.inputs.items()]
    hint = "random tensors do not suit every model: give samples, or profiles with the shapes that it takes"
    return StepError(
        f"the original model ({original.name}) fails on {case.name}",
        [str(error), *shapes],
        hint if case.kind == "random" else "is the sample one that the model is made for?",
    )


def _beyond(original: Original, case: Case) -> StepError | None:
    """Return what to say where a token's number is beyond the model's vocabulary, None where none is."""
    ids = case.inputs.get("input_ids")
    if original.vocabulary is None or ids is None or not ids.size or int(ids.max()) < original.vocabulary.tokens:
        return None
    held = f"the model has {original.vocabulary.tokens} tokens: 0 to {original.vocabulary.tokens - 1}"
    if case.kind == "tensors":
        return StepError(f"{case.name} of the samples holds the token {int(ids.max())}", [held])
    return StepError(
        "the tokenizer does not belong to the model: it makes tokens that the model does not have",
        [f"it makes the token {int(ids.max())} of {case.name}", held],
        "take the tokenizer that the model was trained with, or enlarge its embeddings (resize_token_embeddings)",
    )
