"""The model's files: weights, config and tokenizer are looked at as the step `fetch` looks at them."""

from __future__ import annotations

from pathlib import Path

from engine.builder import sources
from engine.builder.lookup import Lookup
from engine.builder.preflight import architecture, inputs
from engine.builder.preflight.checked_variant import CheckedVariant
from engine.builder.variant import PlannedVariant
from engine.feasibility.facts import ModelFacts
from engine.kit.checkpoints import checkpoint as checkpoints
from engine.kit.checkpoints import json_files, model_files, published, quantized, sentences, unbuildable, weights
from engine.recipe import paths
from engine.step import Source
from engine.store.opening import open_store
from engine.system import own_stores


def checked(variant: PlannedVariant, store: Path) -> CheckedVariant:
    """Return a variant with its model, as far as the model's files are on this machine or in the store.

    Raises RecipeError where the model's files are incomplete or broken.
    """
    subject = CheckedVariant(variant)
    step = next((job.step for job in variant.jobs if job.step.report is ModelFacts), None)
    if step is None:
        return subject
    recipe = variant.loaded.recipe
    if recipe.model.tokenizer is not None:
        with subject.at("model", "tokenizer"):
            _look_at_named_tokenizer(recipe.model.tokenizer)
    with subject.at("model", "source"):
        source = sources.place_of(Source(uri=recipe.model.source))
        if source is not None and source.is_dir():
            model_files.model_at(source)
            weights.complete(source, allowed=recipe.model.weights)
            _look_at_tokenizer(source)
        facts = None if source is None else step.model_facts(source)
    return CheckedVariant(variant, source, facts=facts) if source is not None else _fetched(variant, store)


def look(subject: CheckedVariant) -> None:
    """Raise RecipeError where neither the recipe nor the model names a task that the model can be built for."""
    requested = subject.variant.loaded.recipe.model.task
    if subject.checkpoint is not None:
        with subject.at("model", "source"):
            architecture.refuse_unknown(subject.checkpoint, requested)
            quantized.refuse(subject.checkpoint)
        with subject.at("model", "task" if requested else "source"):
            task = checkpoints.task(subject.checkpoint, requested)
            inputs.refuse_processor(subject.checkpoint, task)
        model = subject.variant.loaded.recipe.model
        with subject.at("model", "source"):
            published.refuse(subject.checkpoint, requested, num_labels=model.num_labels)
            rows = published.table_rows(checkpoints.config(subject.checkpoint))
            if (tokenizer := tokenizer_place(subject)) is not None:
                published.refuse_more_tokens(tokenizer, rows)
        with subject.at("model", "prompt" if model.prompt is not None else "truncate_dim"):
            sentences.choose(subject.checkpoint, prompt=model.prompt, truncate_dim=model.truncate_dim)
        with subject.at("model", "source"):
            inputs.refuse(subject.checkpoint, task, tokenizer=subject.variant.loaded.recipe.model.tokenizer)
        with subject.at("model", "task" if requested else "source"):
            architecture.refuse(subject.checkpoint, task)
            unbuildable.refuse(subject.checkpoint, task)
        with subject.at("model", "source"):
            inputs.refuse_tokenizer(subject.checkpoint, task, tokenizer=subject.variant.loaded.recipe.model.tokenizer)


def untried(subject: CheckedVariant) -> str | None:
    """Return what nobody knows about the model's architecture; None where a trial of the architecture tells."""
    if subject.checkpoint is None:
        return None
    return architecture.untried(
        subject.checkpoint, checkpoints.task(subject.checkpoint, subject.variant.loaded.recipe.model.task)
    )


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
    return CheckedVariant(variant, fetched=opened.artifact_path(fetched.artifact), facts=facts)


def _look_at_named_tokenizer(uri: str) -> None:
    """Raise StepError where the tokenizer that the recipe names is missing or broken; a hub's tokenizer is not read."""
    place = sources.place_of(Source(uri=uri))
    if place is not None:
        model_files.tokenizer_at(place)
        directory = place if place.is_dir() else place.parent
        _look_at_tokenizer(directory)
        inputs.refuse_unconvertible(directory)


def tokenizer_place(subject: CheckedVariant) -> Path | None:
    """Return the place of the tokenizer that a package gets; None for one that is not on this machine."""
    named = subject.variant.loaded.recipe.model.tokenizer
    return subject.checkpoint if named is None else sources.place_of(Source(uri=named))


def _look_at_tokenizer(directory: Path) -> None:
    """Raise StepError where tokenizer.json is broken; the tokenizers package is imported only for the error's words."""
    path = checkpoints.tokenizer_file(directory)
    if path is not None and not json_files.has_field(path, "model"):
        from engine.kit.inputs import tokenizer

        tokenizer.read(path)
