"""Samples: the files that a recipe names as samples, against the model as far as it is on this machine."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from engine import tasks
from engine.builder import sources
from engine.builder.preflight.checked_variant import CheckedVariant
from engine.builder.variant import PlannedVariant
from engine.kit.checkpoints import checkpoint as checkpoints
from engine.kit.checkpoints import labels
from engine.kit.inputs import corpus, samples, tensor_samples
from engine.kit.inputs.cases import LABEL
from engine.kit.onnx.onnx_files import Input
from engine.step import Source
from engine.tasks import Classes

_MOST_BYTES = 16 << 20
"""Of a larger file of texts, `recipe check` reads only the first 16 MiB."""


def look(subject: CheckedVariant) -> None:
    """Raise RecipeError where samples or a text are unreadable or unfit for the model, or where labels are missing."""
    recipe = subject.variant.loaded.recipe
    if recipe.calibrate is not None:
        _look_at_section(subject, "calibrate", recipe.calibrate.samples)
    _look_at_lengths(subject)
    _look_at_text(subject)
    has_labels = _look_at_section(subject, "validate", recipe.validation.samples)
    if recipe.validation.metric is not None and not has_labels:
        from engine.kit.accuracy.refusals import unmeasured_metric

        with subject.at("validate", "metric"):
            raise unmeasured_metric()


def look_at_content(variant: PlannedVariant) -> None:
    """Raise RecipeError where a file of samples cannot be read; the model's files are not looked at."""
    look(CheckedVariant(variant))


def _look_at_lengths(subject: CheckedVariant) -> None:
    """Look at the texts whose lengths are measured; their labels do not count."""
    bench = subject.variant.loaded.recipe.bench
    if bench is None or bench.samples is None or not subject.reads(bench.samples):
        return
    with subject.at("bench", "samples"):
        place = sources.place_of(Source(uri=bench.samples))
        if place is not None:
            _texts(subject, place)


def _look_at_text(subject: CheckedVariant) -> None:
    """Look at the text for the perplexity, if the model's tokenizer is here."""
    section = subject.variant.loaded.recipe.validation.perplexity
    if section is None or subject.checkpoint is None or subject.variant.loaded.recipe.model.tokenizer is not None:
        return
    with subject.at("validate", "perplexity", "text"):
        place = sources.place_of(Source(uri=section.text))
        if place is not None:
            corpus.tokens(place, subject.checkpoint, section.limit)


def _look_at_section(subject: CheckedVariant, section: str, uri: str | None) -> bool:
    """Look at the samples that a section of the recipe names; say whether they have labels, or may have labels."""
    if uri is None or not subject.reads(uri):
        return True
    with subject.at(section, "samples"):
        place = sources.place_of(Source(uri=uri))
        return place is None or _look_at(subject, place)


def _look_at(subject: CheckedVariant, path: Path) -> bool:
    """Look at a file of samples, and tell whether a sample has a label. Raises StepError."""
    if path.suffix == ".npz":
        arrays = tensor_samples.headers(path)
        if specs := _specs(subject):
            tensor_samples.refuse_unfit(path, specs, arrays)
        return LABEL in arrays
    texts = _texts(subject, path)
    if subject.facts is None:
        return True  # without the model's files, nothing more can be compared
    numbers = _labels(subject, texts)
    return any(number is not None for number in numbers)


def _texts(subject: CheckedVariant, path: Path) -> list[samples.SampleText]:
    """Return the texts of a file. Raises StepError for a broken file, and for a model that takes no texts."""
    texts = samples.texts(path, most_bytes=_MOST_BYTES)
    if subject.facts is not None:
        if specs := _specs(subject):
            samples.refuse_no_tokens(specs)
        if not _has_tokenizer(subject):
            raise samples.no_tokenizer()
    return texts


def _specs(subject: CheckedVariant) -> Mapping[str, Input]:
    """Return the inputs of an ONNX file; {} for any other model, because only the loaded model tells its inputs."""
    facts = subject.facts
    if facts is None or not facts.types:
        return {}
    return {
        name: Input(name, facts.types[name], tuple(shape)) for name, shape in facts.axes.items() if name in facts.types
    }


def _has_tokenizer(subject: CheckedVariant) -> bool:
    named = subject.variant.loaded.recipe.model.tokenizer is not None
    return named or (subject.checkpoint is not None and checkpoints.has_tokenizer(subject.checkpoint))


def _labels(subject: CheckedVariant, texts: list[samples.SampleText]) -> list[int | None]:
    """Return the number of each sample's class. Raises StepError for a label that is none of the model's classes."""
    checkpoint = subject.checkpoint
    classes = {} if checkpoint is None else labels.numbers(checkpoint)
    numbers = [samples.label_of(text, classes) for text in texts]
    count = _class_count(subject)
    for text, number in zip(texts, numbers, strict=True):
        if number is not None and count > 1:
            labels.refuse_number(number, text.name, count)
    return numbers


def _class_count(subject: CheckedVariant) -> int:
    """Return the number of classes of a classifier of whole texts; 0 where it is not known."""
    model = subject.variant.loaded.recipe.model
    name = model.task or (subject.facts.task if subject.facts is not None else None)
    task = None if name is None else tasks.known(name)
    if task is None or task.classes is not Classes.ROWS or subject.checkpoint is None:
        return 0
    return model.num_labels or labels.count(subject.checkpoint)
