"""Reference: the outputs of the original model, which validation compares every built model with."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import NamedTemporaryFile
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Self

from engine import tasks
from engine.errors import StepError
from engine.feasibility import proposals
from engine.kit.accuracy import perplexity
from engine.kit.accuracy.outputs import has_empty_row
from engine.kit.checkpoints import checkpoint as checkpoints
from engine.kit.checkpoints import labels, published
from engine.kit.inputs import cases, token_rows
from engine.kit.inputs.cases import Case
from engine.kit.onnx import onnx_files
from engine.kit.reference import image_cases, original_model, own_tokenizer, reference_cases, size_search
from engine.kit.reference.original_model import Original
from engine.recipe import image_input
from engine.recipe.image_input import Images
from engine.recipe.shape_values import Values
from engine.recipe.values import Profile
from engine.step import Source, Step, TypedReport
from engine.text import lists, reasons

if TYPE_CHECKING:
    import numpy as np

    from engine.recipe.schema import Recipe

_PROGRESS = 100
"""The number of cases between two lines of progress in the log."""
_AGAIN = 5
"""Every fifth case, and the first case of each kind, is run twice to find models that draw random numbers."""
_CLASSES_RANK = 2
"""The number of axes of the logits of classes: [batch, classes]."""


@dataclass(frozen=True, kw_only=True)
class ReferenceReport(TypedReport):
    """The number and kinds of the cases that the original ran on, and the name of the original."""

    cases: int
    kinds: Mapping[str, int]
    random: bool
    samples: Literal["file", "random", "built-in"]
    original: str


class Reference(Step):
    """Run the original model in fp32: a checkpoint in PyTorch, an ONNX file in ONNX Runtime without optimizations.

    The original model runs on every sample alone. Samples of a text model also run in batches that are padded on the
    right, padded on the left, or have a hole in the mask, because optimizers make errors with masks. Whole samples also
    run in batches as a server joins them.
    """

    makes = "reference"
    report: ClassVar[type[TypedReport] | None] = ReferenceReport
    facts = ("cpu.isa",)
    keyed_if_set: ClassVar[tuple[str, ...]] = ("shape_values", "preprocess", "labels")

    samples: Source | None = None
    task: str | None = None
    num_labels: int | None = None
    random_head: bool = False
    onnx: bool = False
    images: Images | None = None
    """The input of an image model."""
    preprocess: Mapping[str, Any] = {}
    """What the recipe says about the preparation of image files."""
    labels: tuple[str, ...] = ()
    """The texts with which a zero-shot classifier compares images."""
    profiles: tuple[Profile, ...] = ()
    shape_values: tuple[Mapping[str, Values], ...] = ()
    """The values of inputs that the profiles state; empty where no inputs are drawn within the profiles."""
    text: Source | None = None
    """The text on which the perplexity is measured."""
    text_limit: int | None = None
    """The largest number of tokens of the text that are read."""

    @classmethod
    def for_recipe(cls, recipe: Recipe) -> Self:
        """Return the step `reference`, which every recipe needs.

        The field `profiles` is set only where random inputs are drawn within the profiles, and for the texts of an ONNX
        file, which are cut to the profiles: no file says how many tokens the model takes.
        """
        model, samples, text = recipe.model, recipe.validation.samples, recipe.validation.perplexity
        onnx = model.is_onnx_file
        shown = recipe.images
        texts = onnx and model.tokenizer is not None and (samples is None or samples.endswith(".jsonl"))
        drawn = (onnx or shown is not None) and samples is None
        return cls(
            samples=None if samples is None else Source(uri=samples, part="samples"),
            task=model.task,
            num_labels=model.num_labels,
            random_head=model.random_head,
            onnx=onnx,
            images=shown,
            preprocess={} if shown is None else recipe.preprocess,
            labels=() if shown is None or onnx else model.labels,
            profiles=recipe.profiles if drawn or texts else (),
            shape_values=recipe.shape_values if drawn and not texts else (),
            text=None if text is None else Source(uri=text.text),
            text_limit=None if text is None else text.limit,
        )

    def code_used(self) -> tuple[str, ...]:
        return (*super().code_used(), *tasks.modules(self.task))

    def tools_used(self) -> tuple[str, ...]:
        if self.images is not None and not self.onnx:
            read = ("torchvision",) if self.images.library == "timm" else ()
            task = tasks.known(self.task)
            texts = own_tokenizer.TOOLS if task is not None and task.takes_texts else ()
            return ("torch", image_input.library(self.images), *image_cases.TOOLS, "safetensors", *read, *texts)
        if self.onnx:
            decoding = () if self.images is None else image_cases.TOOLS
            return tuple(dict.fromkeys((*onnx_files.TOOLS, "onnxruntime", "numpy", "tokenizers", *decoding)))
        return ("torch", "transformers", "safetensors", "numpy", *own_tokenizer.TOOLS)

    def facts_used(self) -> tuple[str, ...]:
        """Return the names of the facts that decide the kernels: `cpu.isa` and, for ONNX, ONNX Runtime's build."""
        return (*self.facts, "onnxruntime.build") if self.onnx else self.facts

    def run(
        self, out: Path, *, checkpoint: Path, samples: Path | None = None, text: Path | None = None
    ) -> ReferenceReport:
        """Run the original model on all cases, and write the cases with the model's outputs into `out`.

        Raises StepError where the model cannot be loaded, fails on a sample, or does not accept the samples.
        """
        task = checkpoints.task(checkpoint, self.task)
        published.refuse(checkpoint, self.task, num_labels=self.num_labels)
        tokens = [] if text is None else perplexity.tokens_of(text, checkpoint, self.text_limit or perplexity.LIMIT)
        print("loading the original model")
        with original_model.load(
            checkpoint, task, num_labels=self.num_labels, random_head=self.random_head, images=self.images
        ) as original:
            rows = original.ranges.get("input_ids") or published.table_rows(checkpoints.config(checkpoint))
            published.refuse_more_tokens(checkpoint, rows)
            out.parent.mkdir(parents=True, exist_ok=True)
            with NamedTemporaryFile(dir=out.parent) as file:  # images and the answers of a language model are large
                spill, specs = cases.Spill(file.file), original.input_specs
                images = image_cases.maker(self.images, checkpoint, specs, self.preprocess, samples, is_original=True)
                if images is not None:
                    inputs = image_cases.ask(images, samples, checkpoint, self.labels, keep=spill.keep)
                else:
                    inputs = reference_cases.ask(
                        original, checkpoint, samples, task=task, profiles=self.profiles, values=self.shape_values
                    )
                print(f"running {original.name} on {len(inputs)} cases: {lists.counts(cases.count_kinds(inputs))}")
                answered = [spill.keep(case) for case in _answered(original, inputs)]
                cases.save(answered, out)
                if (padding := reference_cases.padding(original, checkpoint, task=task)) is not None:
                    cases.save_padding(padding, out)
            if text is not None:
                value = perplexity.of_original(original.answer, tokens, checkpoints.max_sequence(checkpoint), out)
                print(f"perplexity {value:.6g} on {len(tokens)} tokens of the text")
        kinds = cases.count_kinds(answered)
        drawn = "random" in kinds
        return ReferenceReport(
            cases=len(answered),
            kinds=kinds,
            random=drawn,
            samples="file" if samples is not None else "random" if drawn else "built-in",
            original=original.name,
        )


def _answered(original: Original, unanswered: Sequence[Case]) -> Iterator[Case]:
    """Yield the cases with the outputs of the original.

    Raises StepError where the original fails on a case, gives different outputs for the same inputs, or lacks the class
    of a label.
    """
    import numpy as np

    tried: set[str] = set()
    for number, sample in enumerate(unanswered, 1):
        try:
            with _explained(original, sample):
                case = replace(sample, inputs=original.complete(sample.inputs))
            outputs = _answer(original, case)
        except StepError:
            if sample.kind not in cases.JOINED:
                raise
            print(f"{sample.name} is left out: the original does not take these inputs")
            continue
        if number == 1:
            _refuse_labels(unanswered, outputs)
        if sample.kind not in tried or number % _AGAIN == 0:
            _refuse_chance(original, case, outputs)
        tried.add(sample.kind)
        case = replace(case, outputs=outputs)
        if case.kind == "blank-row" and has_empty_row(case):
            print(f"{case.name} is left out: the original gives its other rows no numbers")
            continue
        if not all(np.isfinite(output).all() for output in outputs.values() if output.dtype.kind == "f"):
            print(f"the original's outputs for {case.name} contain infinities or NaN")
        if number % _PROGRESS == 0:
            print(f"{number} of {len(unanswered)} cases")
        yield case


@contextlib.contextmanager
def _explained(original: Original, case: Case) -> Iterator[None]:
    """Turn an error of PyTorch or ONNX Runtime, whichever runs the original, into a StepError that names the case."""
    try:
        yield
    except Exception as error:
        raise _failure(original, case, error) from error


def _answer(original: Original, case: Case) -> dict[str, np.ndarray]:
    """Return the original's outputs, for a sample of text on what the checkpoint's own tokenizer makes of the text."""
    with _explained(original, case):
        if original.answer_user is None or case.own_inputs is None:
            return original.answer(case.inputs)
        # No tokenizer gives the tokens for an encoder-decoder's decoder; images are as their own processor has them.
        others = {name: array for name, array in case.inputs.items() if name not in token_rows.NAMES}
        return original.answer_user({**others, **case.own_inputs})


def _refuse_chance(original: Original, case: Case, first: Mapping[str, np.ndarray]) -> None:
    """Raise StepError where two runs of the original on the same inputs differ, so that no model could match both."""
    again = _answer(original, case)
    other = [name for name, output in first.items() if not cases.is_same_but_rounding(output, again[name])]
    if other:
        raise StepError(
            f"the original model ({original.name}) is not deterministic: asked twice, it gives two answers",
            [f"to {case.name}, in: {', '.join(other)}"],
            "is Dropout still on, or does it draw random numbers? export it for inference, with noise as an input",
        )


def _refuse_labels(unanswered: Sequence[Case], outputs: Mapping[str, np.ndarray]) -> None:
    """Raise StepError for a sample with a label that is not among the classes of the model."""
    logits = next(iter(outputs.values()))
    if logits.dtype.kind != "f" or logits.ndim != _CLASSES_RANK or logits.shape[1] == 1:
        return
    count = logits.shape[1]
    for case in unanswered:
        if case.label is not None:
            labels.refuse_number(case.label, case.name, count)


def _failure(original: Original, case: Case, error: Exception) -> StepError:
    """Return the error for an original model that cannot run on a case."""
    beyond = _beyond(original, case)
    if beyond is not None:
        return beyond
    shapes = [f"{name}: {tensor.dtype} {list(tensor.shape)}" for name, tensor in case.inputs.items()]
    hint = _of_random(original, case) if case.kind == "random" else "is the sample one that the model is made for?"
    return StepError(
        f"the original model ({original.name}) fails on {case.name}", [*reasons.facts(error), *shapes], hint
    )


def _of_random(original: Original, case: Case) -> str:
    """Return the hint for random inputs on which a model fails: a profile with which the model runs, if one exists."""
    if original.vocabulary is None:
        print("looking for sizes with which the model runs")
        ranges = size_search.near(original, case)
        if ranges:
            return f"the model runs with other sizes: write {proposals.as_yaml(ranges)}"
    return (
        "random tensors do not suit every model: give samples (validate: {samples: FILE.npz}), an array for each input"
    )


def _beyond(original: Original, case: Case) -> StepError | None:
    """Return the error for a token number beyond the model's vocabulary; None where the vocabulary has all tokens."""
    ids = case.inputs.get("input_ids")
    if original.vocabulary is None or ids is None or not ids.size or int(ids.max()) < original.vocabulary.tokens:
        return None
    vocabulary = f"the model has {original.vocabulary.tokens} tokens: 0 to {original.vocabulary.tokens - 1}"
    if case.kind == "tensors":
        return StepError(f"{case.name} of the samples holds the token {int(ids.max())}", [vocabulary])
    return StepError(
        "the tokenizer does not belong to the model: it makes tokens that the model does not have",
        [f"it makes the token {int(ids.max())} of {case.name}", vocabulary],
        "take the tokenizer that the model was trained with, or enlarge its embeddings (resize_token_embeddings)",
    )
