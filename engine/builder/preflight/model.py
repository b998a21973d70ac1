"""The model's files: weights, config and tokenizer are looked at as the step `fetch` looks at them."""

from __future__ import annotations

import importlib
import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from engine import tasks
from engine.builder import sources
from engine.builder.lookup import Lookup
from engine.builder.preflight import architecture
from engine.builder.variant import PlannedVariant
from engine.errors import FieldError, RecipeError, UserError
from engine.feasibility.facts import ModelFacts
from engine.kit.checkpoints import checkpoint as checkpoints
from engine.kit.checkpoints import json_files, model_files, published, sentences, unbuildable, weights
from engine.kit.inputs import index_ranges, token_inputs
from engine.kit.onnx import onnx_files, onnx_source
from engine.kit.reference import image_inputs
from engine.machine import imports
from engine.recipe import image_input, paths
from engine.recipe.schema import Recipe
from engine.step import Source
from engine.store.opening import open_store
from engine.system import own_stores
from engine.tasks import Classes, Unfit, answer

if TYPE_CHECKING:
    import onnx

    from engine.recipe.postprocessing import Postprocess


@dataclass(frozen=True)
class CheckedVariant:
    """A variant that is checked, with its model as far as the model is on this machine."""

    variant: PlannedVariant
    checkpoint: Path | None = None
    """The directory with the model's config.json: of the recipe, or fetched from a hub by an earlier build."""
    onnx_file: Path | None = None
    """The .onnx file that the recipe names."""
    facts: ModelFacts | None = None
    """What the model's files say about the model; None if the model is not here."""

    @property
    def recipe(self) -> Recipe:
        """The variant's recipe."""
        return self.variant.loaded.recipe

    @property
    def tokenizer(self) -> Path | None:
        """The path of the tokenizer that a package gets; None for one that is not on this machine."""
        named = self.recipe.model.tokenizer
        return self.checkpoint if named is None else sources.path_of(Source(uri=named))

    def path_of(self, uri: str | None) -> Path | None:
        """Return the path of a source that a job of the plan reads; None for any other, and for a hub's repository."""
        read = {source.uri for job in self.variant.jobs for source in job.step.sources().values()}
        return sources.path_of(Source(uri=uri)) if uri in read and uri is not None else None

    @contextmanager
    def at(self, *field: str) -> Iterator[None]:
        """Raise an error of the block as a RecipeError with the same words, at a field of the recipe, or at its own."""
        try:
            yield
        except RecipeError:
            raise
        except UserError as error:
            place = error.path if isinstance(error, FieldError) else field
            raise self.variant.loaded.error(error.what, *place, facts=error.facts, hint=error.hint) from error


def checked(variant: PlannedVariant, store: Path) -> CheckedVariant:
    """Return a variant with its model, as far as the model's files are on this machine or in the store.

    Raises RecipeError where the model's files are incomplete or broken.
    """
    subject = CheckedVariant(variant)
    step = next((job.step for job in variant.jobs if job.step.report is ModelFacts), None)
    if step is None:
        return subject
    model = subject.recipe.model
    with subject.at("model", "tokenizer"):
        if model.tokenizer is not None and (path := sources.path_of(Source(uri=model.tokenizer))) is not None:
            model_files.tokenizer_at(path)
            directory = path if path.is_dir() else path.parent
            _look_at_tokenizer(directory)
            architecture.refuse_unconvertible(directory)
    with subject.at("model", "source"):
        source = sources.path_of(Source(uri=model.source))
        if source is None:
            return _fetched(variant, store)
        is_folder = source.is_dir()
        if is_folder:
            model_files.model_at(source)
            weights.complete(source, allowed=model.weights)
            _look_at_tokenizer(source)
        facts = step.model_facts(source)
        if is_folder and facts is not None:
            facts = _with_axes(facts, source, subject.recipe)
    return CheckedVariant(variant, source if is_folder else None, None if is_folder else source, facts)


def look(subject: CheckedVariant) -> None:
    """Raise RecipeError where neither the recipe nor the model names a task that the model can be built for."""
    checkpoint, model = subject.checkpoint, subject.recipe.model
    if checkpoint is None:
        return
    with subject.at("model", "source"):
        architecture.refuse_unknown(checkpoint, model.task)
        unbuildable.refuse_quantized(checkpoint)
    with subject.at("model", "task" if model.task else "source"):
        task = checkpoints.task(checkpoint, model.task)
        checkpoints.refuse_other_library(checkpoint, image_input.library(subject.recipe.images))
        architecture.refuse_class(checkpoint, task)
        checkpoints.refuse_unnamed(checkpoint, task, images=subject.recipe.images is not None)
        architecture.refuse_processor(checkpoint, task)
    with subject.at("model", "source"):
        published.refuse(checkpoint, model.task, num_labels=model.num_labels)
        rows = published.table_rows(checkpoints.config(checkpoint))
        if (tokenizer := subject.tokenizer) is not None:
            published.refuse_more_tokens(tokenizer, rows)
    with subject.at("model", "prompt" if model.prompt is not None else "truncate_dim"):
        sentences.choose(checkpoint, prompt=model.prompt, truncate_dim=model.truncate_dim)
    with subject.at("model", "source"):
        architecture.refuse_inputs(checkpoint, task, tokenizer=model.tokenizer)
    with subject.at("model", "task" if model.task else "source"):
        architecture.refuse(checkpoint, task)
        unbuildable.refuse(checkpoint, task)
    with subject.at("model", "source"):
        if model.tokenizer is None and architecture.is_of_text(task):
            architecture.refuse_unconvertible(checkpoint)


def untried(subject: CheckedVariant) -> str | None:
    """Return what nobody knows about the model's architecture; None where a trial of the architecture tells."""
    if subject.checkpoint is None:
        return None
    return architecture.untried(subject.checkpoint, checkpoints.task(subject.checkpoint, subject.recipe.model.task))


def _fetched(variant: PlannedVariant, store: Path) -> CheckedVariant:
    """Return a variant of a hub's model with what the last build of the recipe fetched."""
    if not (store / "format").is_file() or not own_stores.is_own(str(store)):
        return CheckedVariant(variant)
    from engine.builder.summary import summarize  # most checks need no report, and do not wait for this import

    opened = open_store(store)
    summary = summarize(Lookup(opened), variant, newest=True)
    opened.leave()
    fetched = next((summary.records.get(job.name) for job in variant.jobs if job.step.report is ModelFacts), None)
    facts = summary.facts
    named = paths.hub_name(variant.loaded.recipe.model.source)
    if fetched is None or facts is None or not (facts.source or "").startswith(f"{named}@"):
        return CheckedVariant(variant)
    checkpoint = opened.artifact_path(fetched.artifact)
    return CheckedVariant(variant, checkpoint, facts=_with_axes(facts, checkpoint, variant.loaded.recipe))


def _with_axes(facts: ModelFacts, checkpoint: Path, recipe: Recipe) -> ModelFacts:
    """Return the facts with the inputs of a model of images, which depend on the recipe's task and size of images."""
    task = tasks.known(recipe.model.task or checkpoints.own_task(checkpoint) or "")
    if checkpoints.kind(checkpoint) != "transformers" or task is None or (task.takes_images and recipe.images is None):
        return facts
    return replace(facts, axes=image_inputs.axes(checkpoint, task.name, recipe.images))


def _look_at_tokenizer(directory: Path) -> None:
    """Raise StepError where tokenizer.json is broken; the tokenizers package is imported only for the error's words."""
    path = checkpoints.tokenizer_file(directory)
    if path is not None and not json_files.has_field(path, "model"):
        from engine.kit.inputs import tokenizer

        tokenizer.read(path)


_QUIET = "ORT_DISABLE_TELEMETRY"
"""The variable that keeps ONNX Runtime from writing a database into the home folder, and from using the network."""


def look_at_onnx_file(subject: CheckedVariant) -> None:
    """Raise RecipeError where a package cannot answer with the .onnx file, or ONNX Runtime cannot load it.

    ONNX Runtime runs the original of every ONNX model.
    """
    path = subject.onnx_file
    if path is None or subject.facts is None:
        return
    _look_at_outputs(subject, path)
    if (tokenizer := subject.tokenizer) is not None:
        with subject.at("model", "tokenizer"):
            ranges = index_ranges.of(token_inputs.standardized(onnx_source.read(path)))
            published.refuse_more_tokens(tokenizer, ranges.get("input_ids"))
    if imports.location("onnxruntime") is None:
        return
    _import_quietly()
    from engine.runtimes.onnxruntime import loadable

    with subject.at("model", "source"):
        loadable.refuse(onnx_source.read(path), path, size=subject.facts.bytes)


def _look_at_outputs(subject: CheckedVariant, path: Path) -> None:
    """Raise RecipeError where the outputs of a file are not those of the recipe's task."""
    recipe = subject.recipe
    if recipe.postprocess is not None:
        _look_at_named(subject, recipe.postprocess, onnx_source.read(path))
        return
    task, triton = tasks.known(recipe.model.task or ""), recipe.package.triton
    if task is None or not (task.classes or task.context) or not (triton.postprocess and triton.tokenizer):
        return
    if task.takes_texts and recipe.model.tokenizer is None:
        return
    from engine.kit.triton.answers import by_task, scores
    from engine.kit.triton.answers.named import refuse_labels
    from engine.kit.triton.config import Signature

    model, axes = onnx_source.read(path), 3 if task.classes is Classes.TOKENS else 2
    signature = Signature({}, onnx_files.outputs(model))
    with subject.at("model", "task"):
        try:
            for name in task.outputs:
                output, _ = answer.output(signature, name, axes=axes, alone=not task.context)
                if task.classes is None:
                    scores.refuse_activated(model, output.name, axes=axes)
                else:
                    refuse_labels(recipe.model.labels, answer.extent(output))
                    scores.behind(model, output.name, axes=axes)
        except Unfit as reason:
            raise by_task.refusal(task.name, reason) from None


def _look_at_named(subject: CheckedVariant, named: Postprocess, model: onnx.ModelProto) -> None:
    from engine.kit.triton.answers import by_task
    from engine.kit.triton.answers.named import make
    from engine.kit.triton.config import Signature

    signature, recipe = Signature(onnx_files.inputs(model), onnx_files.outputs(model)), subject.recipe
    with subject.at("postprocess"):
        if recipe.model.task is not None:
            what = f"`postprocess` and the task {recipe.model.task} each say what the answers are"
            raise FieldError(what, ("postprocess",), hint="leave postprocess out, or model.task")
        try:
            make(named, model, signature, names=recipe.model.labels, preprocess=recipe.preprocess)
        except Unfit as reason:
            raise by_task.refusal("`postprocess`", reason) from None


def _import_quietly() -> None:
    """Import ONNX Runtime so that it writes no file: `recipe check` writes nothing."""
    before = os.environ.get(_QUIET)
    os.environ[_QUIET] = "1"
    try:
        importlib.import_module("onnxruntime")
    finally:
        if before is None:
            del os.environ[_QUIET]
        else:
            os.environ[_QUIET] = before
