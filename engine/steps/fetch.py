"""Fetch: a model and its tokenizer are copied into the store, and verified to be complete."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar, Self

from engine.errors import StepError
from engine.feasibility.facts import GraphFacts, ModelFacts
from engine.kit.checkpoints import checkpoint, hub, model_files, pickles, weights
from engine.kit.onnx import onnx_files, onnx_source
from engine.step import Source, Step, TypedReport
from engine.store.copying import copy

if TYPE_CHECKING:
    from engine.recipe.schema import Recipe


class Fetch(Step):
    """Copy a model out of a directory, a package, an ONNX file or a hub's repository into a checkpoint."""

    makes: ClassVar[str] = "checkpoint"
    carries_model: ClassVar[bool] = True
    tools: ClassVar[tuple[str, ...]] = ("torch", "safetensors")
    report: ClassVar[type[TypedReport] | None] = ModelFacts

    source: Source
    tokenizer: Source | None = None
    weights: model_files.Weights = "safetensors"

    @classmethod
    def for_recipe(cls, recipe: Recipe) -> Self:
        """Return the step `fetch`, which every recipe needs."""
        model = recipe.model
        return cls(
            source=Source(uri=model.source, revision=model.revision),
            tokenizer=Source(uri=model.tokenizer, part="tokenizer") if model.tokenizer else None,
            weights=model.weights,
        )

    def tools_used(self) -> tuple[str, ...]:
        """Return the Python packages that convert pickles, or write ONNX files; none where files are only copied."""
        if self.source.uri.lower().endswith(".onnx"):
            return onnx_files.TOOLS
        return self.tools if self.weights == "pickle-tensors-only" else ()

    def model_facts(self, place: Path) -> ModelFacts:
        """Return what the model's own files say about the model, for example its inputs and its size."""
        return describe(place)

    def run(self, out: Path, *, source: Path | str, tokenizer: Path | str | None = None) -> ModelFacts:
        """Write the checkpoint into `out`. Raises StepError where the model is incomplete or cannot be downloaded."""
        if isinstance(source, Path) and source.is_file():
            _copy_onnx(source, out)
        elif isinstance(source, Path):
            _copy_model(source, out, self.weights)
        else:
            hub.download(*_on_hub(source), out, weights=self.weights)
        if tokenizer is not None:
            _add_tokenizer(tokenizer, out)
        names, _ = model_files.listing(out)
        weights.check(out, names)
        if any((out / name).is_file() for name in (model_files.PICKLE, model_files.PICKLE_INDEX)):
            pickles.convert(out)
        named = source if isinstance(source, str) else _without_path(self.source.uri)
        return replace(describe(out), source=named)


def describe(place: Path) -> ModelFacts:
    """Return what a checkpoint, a model's directory or an .onnx file says about the model; no tensor is read.

    Raises StepError where `place` holds no model.
    """
    if place.is_file() or checkpoint.kind(place) == "onnx":
        path = place if place.is_file() else place / "model.onnx"
        heavy = [path, *(path.parent / name for name in onnx_source.data_files(path))]
        described = onnx_source.describe(onnx_source.read(path))
    else:
        heavy = sorted(place.glob("*.safetensors"))
        described = _described(place, [path.name for path in heavy])
    return ModelFacts(
        kind="onnx" if place.is_file() else checkpoint.kind(place),
        task=None if place.is_file() else _task(place),
        max_sequence=None if place.is_file() else checkpoint.max_sequence(place),
        bytes=sum(path.stat().st_size for path in heavy),
        **vars(described),
    )


def _copy_model(directory: Path, out: Path, allowed: model_files.Weights) -> None:
    _copy_all(directory, weights.complete(directory, allowed=allowed), out)


def _copy_onnx(path: Path, out: Path) -> None:
    if path.suffix != ".onnx":
        raise StepError(
            f"{path.name} is neither an .onnx file nor a model's directory",
            hint="name the directory with config.json and the weights, or an .onnx file",
        )
    names = onnx_source.data_files(path)
    print(f"copying {path.name}" + (f" and {len(names)} files of external data" if names else ""))
    copy(path, out / "model.onnx")
    for name in names:
        copy(path.parent / name, out / name)


def _add_tokenizer(tokenizer: Path | str, out: Path) -> None:
    """Put the files of another tokenizer into the checkpoint, and remove the files of the model's own tokenizer."""
    if checkpoint.kind(out) != "onnx":
        for name in model_files.of_tokenizer(model_files.listing(out)[0]):
            (out / name).unlink()
    if isinstance(tokenizer, str):
        hub.download(*_on_hub(tokenizer), out, weights="safetensors", tokenizer=True)
        return
    _copy_all(tokenizer if tokenizer.is_dir() else tokenizer.parent, model_files.tokenizer_at(tokenizer), out)


def _copy_all(directory: Path, names: Sequence[str], out: Path) -> None:
    print(f"copying {len(names)} files")
    for name in names:
        copy(directory / name, out / name)


def _on_hub(resolved: str) -> tuple[str, str]:
    """Return the repository and the commit of `hf:REPO@COMMIT`."""
    repository, _, commit = resolved.removeprefix("hf:").rpartition("@")
    return repository, commit


def _described(out: Path, names: Sequence[str]) -> GraphFacts:
    """Return what config.json and the weights' headers say: architecture, inputs, and number of parameters."""
    settings = checkpoint.config(out)
    width = settings.get("hidden_size") or settings.get("d_model")
    named = settings.get("architecture") or next(iter(settings.get("architectures") or ()), None)
    return GraphFacts(
        architecture=named or settings.get("model_type", "unknown"),
        parameters=weights.parameters(out, names),
        axes={name: tuple(shape) for name, shape in checkpoint.axes(out).items()},
        width=width if isinstance(width, int) else None,
    )


def _task(out: Path) -> str | None:
    """Return the task that the model's own files name; a step that needs a task refuses an unsupported task."""
    return checkpoint.own_task(out)


def _without_path(uri: str) -> str:
    return "a local file or directory" if uri.startswith("file:") else uri
