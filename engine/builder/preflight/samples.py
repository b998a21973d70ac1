"""Samples: the files that a recipe names as samples, against the model as far as it is on this machine."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from engine import tasks
from engine.builder.preflight.model import CheckedVariant
from engine.builder.variant import PlannedVariant
from engine.errors import StepError
from engine.kit.accuracy import perplexity
from engine.kit.checkpoints import checkpoint as checkpoints
from engine.kit.checkpoints import labels
from engine.kit.inputs import image_samples, overlap, samples, tensor_samples
from engine.kit.inputs.cases import LABEL
from engine.kit.onnx.onnx_files import Input
from engine.tasks import Classes

_MOST_BYTES = 16 << 20
"""Of a larger file of texts, `recipe check` reads only the first 16 MiB."""


def look(subject: CheckedVariant) -> None:
    """Raise RecipeError where samples or a text are unreadable or unfit for the model, or where labels are missing."""
    calibrate, bench, validation = subject.recipe.calibrate, subject.recipe.bench, subject.recipe.validation
    with subject.at("calibrate", "samples"):
        if calibrate is not None:
            if validation.samples is not None:
                _refuse_overlap(calibrate.samples, validation.samples, calibrate.limit)
            if (path := subject.path_of(calibrate.samples)) is not None:
                _look_at(subject, path)
    with subject.at("bench", "samples"):  # the lengths of the texts are measured, so their labels do not count
        if bench is not None and (path := subject.path_of(bench.samples)) is not None:
            _texts(subject, path)
    with subject.at("validate", "perplexity", "text"):
        text = validation.perplexity
        path = None if text is None else subject.path_of(text.text)
        if text is not None and path is not None and path.is_file():
            _look_at_text(subject, path, text.limit)
    with subject.at("validate", "samples"):
        path = subject.path_of(validation.samples)
        has_labels = path is None or _look_at(subject, path)
    if validation.metric is not None and not has_labels:
        from engine.kit.accuracy import refusals

        with subject.at("validate", "metric"):
            raise refusals.unmeasured("metric", refusals.NO_METRIC)


def look_at_content(variant: PlannedVariant) -> None:
    """Raise RecipeError where a file of samples cannot be read; the model's files are not looked at."""
    look(CheckedVariant(variant))


def _refuse_overlap(calibration: str, validation: str, limit: int) -> None:
    """Raise StepError if samples for calibration are also samples for validation."""
    overlap.refuse(overlap.shared(calibration, validation, limit))


def _look_at_text(subject: CheckedVariant, path: Path, limit: int) -> None:
    """Look at the text for the perplexity; its tokens are counted if the model's own tokenizer is here."""
    if subject.checkpoint is None or subject.recipe.model.tokenizer is not None:
        perplexity.text_of(path, limit)
    else:
        perplexity.tokens_of(path, subject.checkpoint, limit)


def _look_at(subject: CheckedVariant, path: Path) -> bool:
    """Look at a file of samples, and tell whether a sample has a label. Raises StepError."""
    if path.suffix == ".npz":
        arrays = tensor_samples.headers(path)
        if specs := _specs(subject):
            tensor_samples.refuse_unfit(path, specs, arrays)
        return LABEL in arrays
    recipe = subject.recipe  # lines of images for a checkpoint of texts are wrong lines of texts, as in the build
    may_take_images = recipe.images is not None or recipe.model.is_onnx_file or path.suffix != ".jsonl"
    if may_take_images and image_samples.are_images(path):
        return _look_at_images(subject, path)
    if recipe.images is not None:
        raise StepError(f"{path.name} names no images, and the model takes images", hint=image_samples.FORMS)
    texts = _texts(subject, path)
    if subject.facts is None:
        return True  # without the model's files, nothing more can be compared
    numbers = _labels(subject, texts)
    return any(number is not None for number in numbers)


def _look_at_images(subject: CheckedVariant, path: Path) -> bool:
    """Look at the headers of image files, and tell whether an image has a label. Raises StepError."""
    model = subject.recipe.model
    task = tasks.known(model.task or (subject.facts.task if subject.facts is not None else None))
    if subject.recipe.images is None and (task is not None or model.is_onnx_file):
        raise image_samples.not_taken()
    texts = model.labels or (task.example if task is not None and task.takes_texts else ())
    classes = {name: number for number, name in enumerate(model.labels)}
    classes = classes if subject.checkpoint is None else labels.numbers(subject.checkpoint)
    numbers: list[int | str | None] = []
    for image in image_samples.read(path, texts):
        image.refuse_unreadable()
        is_known = subject.checkpoint is not None or image.texts
        unknown = image.folder or None if image.label is None else image.label  # the folder may have a class's name
        numbers.append(image.number(classes) if is_known else unknown)
        if isinstance(numbers[-1], int) and (count := len(image.texts) or _class_count(subject)):
            labels.refuse_number(numbers[-1], image.name, count)
    return any(number is not None for number in numbers)


def _texts(subject: CheckedVariant, path: Path) -> list[samples.SampleText]:
    """Return the texts of a file. Raises StepError for a broken file, and for a model that takes no texts."""
    texts = samples.texts(path, most_bytes=_MOST_BYTES)
    if subject.facts is not None:
        if specs := _specs(subject):
            samples.refuse_no_tokens(specs)
        own = subject.checkpoint is not None and checkpoints.has_tokenizer(subject.checkpoint)
        if not own and subject.recipe.model.tokenizer is None:
            raise samples.no_tokenizer()
    return texts


def _specs(subject: CheckedVariant) -> Mapping[str, Input]:
    """Return the inputs of an ONNX file; {} for any other model, because only the loaded model tells its inputs."""
    types = {} if subject.facts is None else subject.facts.types or {}
    axes = {} if subject.facts is None else subject.facts.axes
    return {name: Input(name, types[name], tuple(shape)) for name, shape in axes.items() if name in types}


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
    model = subject.recipe.model
    name = model.task or (subject.facts.task if subject.facts is not None else None)
    task = None if name is None else tasks.known(name)
    if task is None or task.classes is not Classes.ROWS or subject.checkpoint is None:
        return 0
    return model.num_labels or labels.count(subject.checkpoint)
