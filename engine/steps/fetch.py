"""Fetch: a model and its tokenizer are copied into the store, and verified to be complete."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, ClassVar, Self

from engine.errors import JudgementError, StepError
from engine.feasibility.facts import GraphFacts, ModelFacts
from engine.kit.checkpoints import checkpoint, hub, labels, licenses, model_files, pickles, sentences, weights
from engine.kit.inputs import token_inputs
from engine.kit.onnx import ir_models, mapped_weights, onnx_files, onnx_source, qdq_operators, widening
from engine.step import Source, Step, TypedReport
from engine.store.disk import copy

if TYPE_CHECKING:
    from engine.recipe.licenses import Licensed
    from engine.recipe.schema import Recipe

_ALLOW = "add the licence to policy.licenses, or take another model"


class Fetch(Step):
    """Copy a model out of a directory, a package, an ONNX file or a hub's repository into a checkpoint."""

    makes: ClassVar[str] = "checkpoint"
    carries_model: ClassVar[bool] = True
    tools: ClassVar[tuple[str, ...]] = ("torch", "safetensors")
    report: ClassVar[type[TypedReport] | None] = ModelFacts

    judged: ClassVar[tuple[str, ...]] = ("allowed_licenses",)
    keyed_if_set: ClassVar[tuple[str, ...]] = ("prompt", "truncate_dim", "labels")

    source: Source
    tokenizer: Source | None = None
    weights: model_files.Weights = "safetensors"
    prompt: str | None = None
    """The name of the prompt in front of each text; None for the default of a sentence-transformers model."""
    truncate_dim: int | None = None
    """How many numbers of a sentence embedding are kept; None for the default of a sentence-transformers model."""
    labels: tuple[str, ...] = ()
    """The names of an ONNX file's classes; empty where the recipe names none."""
    license: Source | None = None
    """The files that say something about the model's licence. They go into the report, not into the checkpoint."""
    tokenizer_license: Source | None = None
    """The same of a tokenizer that comes from elsewhere than the model."""
    allowed_licenses: tuple[str, ...] | None = None
    """The SPDX ids that the recipe's policy allows; None for a recipe without such a policy."""

    @classmethod
    def for_recipe(cls, recipe: Recipe) -> Self:
        """Return the step `fetch`, which every recipe needs."""
        model = recipe.model
        return cls(
            source=Source(uri=model.source, revision=model.revision),
            tokenizer=Source(uri=model.tokenizer, part="tokenizer") if model.tokenizer else None,
            weights=model.weights,
            prompt=model.prompt,
            truncate_dim=model.truncate_dim,
            labels=model.labels if model.is_onnx_file else (),
            license=Source(uri=model.source, revision=model.revision, part="license"),
            tokenizer_license=Source(uri=model.tokenizer, part="license") if model.tokenizer else None,
            allowed_licenses=recipe.policy.licenses,
        )

    def tools_used(self) -> tuple[str, ...]:
        if self.source.uri.lower().endswith(".onnx"):
            return ir_models.TOOLS
        return self.tools if self.weights == "pickle-tensors-only" else ()

    def model_facts(self, place: Path) -> ModelFacts:
        """Return what the model's own files say about the model, for example its inputs and its size."""
        return describe(place, tokens=self.tokenizer is not None)

    def licenses_at(self, **places: Path | str | None) -> tuple[Licensed, ...]:
        """Return what the sources `license` and `tokenizer_license` say, which lie at `places`."""
        sources = {"license": ("model", self.license), "tokenizer_license": ("tokenizer", self.tokenizer_license)}
        return tuple(
            licenses.of_source(role, source, places.get(name)).about
            for name, (role, source) in sources.items()
            if source is not None
        )

    def judge(self, report: ModelFacts) -> None:
        """Compare the licences with the policy. Raises JudgementError for one that is not listed or not known."""
        refusals = self.refusals(report.licenses)
        if refusals:
            raise JudgementError(f"policy.licenses refuses the model: {refusals[0]}", refusals[1:], _ALLOW)

    def refusals(self, known: Sequence[Licensed]) -> list[str]:
        """Return why the policy refuses some of the licences; nothing where it allows all, or where there is none."""
        names = self.allowed_licenses
        return [] if names is None else [each for about in known for each in about.refusals(names)]

    def run(
        self,
        out: Path,
        *,
        source: Path | str,
        tokenizer: Path | str | None = None,
        license: Path | str | None = None,  # noqa: A002 - the name of the field
        tokenizer_license: Path | str | None = None,
    ) -> ModelFacts:
        """Write the checkpoint into `out`. Raises StepError where the model is incomplete or cannot be downloaded."""
        if isinstance(source, Path) and source.is_file():
            copy_onnx(source, out, tokens=tokenizer is not None)
        elif isinstance(source, Path):
            _copy_all(source, weights.complete(source, allowed=self.weights), out)
        else:
            hub.download(*_on_hub(source), out, weights=self.weights)
        if self.labels:
            labels.write(out, self.labels)
        sentences.apply(out, prompt=self.prompt, truncate_dim=self.truncate_dim)
        if tokenizer is not None:
            _add_tokenizer(tokenizer, out)
        names, _ = model_files.listing(out)
        weights.check(out, names)
        if any((out / name).is_file() for name in (model_files.PICKLE, model_files.PICKLE_INDEX)):
            pickles.convert(out)
        named = source if isinstance(source, str) else self.source.uri
        named = "a local file or directory" if named.startswith("file:") else named  # paths differ between machines
        known = self.licenses_at(license=license, tokenizer_license=tokenizer_license)
        return replace(describe(out), source=named, licenses=known)


def describe(place: Path, *, tokens: bool = False) -> ModelFacts:
    """Return what a checkpoint, a model's directory or an .onnx file says about the model; no tensor is read.

    With `tokens`, the inputs of an .onnx file have the names that a tokenizer gives them. Raises StepError where
    `place` holds no model, or where a tokenizer cannot fill the inputs.
    """
    if place.is_file() or checkpoint.kind(place) == "onnx":
        path = place if place.is_file() else place / "model.onnx"
        heavy = [path, *(path.parent / name for name in onnx_source.data_files(path))]
        model = onnx_source.read(path)
        described = onnx_source.describe(token_inputs.standardized(model) if tokens else model)
    else:
        heavy = sorted(place.glob("*.safetensors"))
        described = _described(place, [path.name for path in heavy])
    return ModelFacts(
        kind="onnx" if place.is_file() else checkpoint.kind(place),
        task=None if place.is_file() else checkpoint.own_task(place),
        max_sequence=None if place.is_file() else checkpoint.max_sequence(place),
        bytes=sum(path.stat().st_size for path in heavy),
        **vars(described),
    )


def copy_onnx(path: Path, out: Path, *, tokens: bool) -> None:
    """Write an ONNX file and its external data into `out`, with the operators and, with `tokens`, the names of a build.

    Raises StepError for a file that is no ONNX model.
    """
    if path.suffix != ".onnx":
        raise StepError(
            f"{path.name} is neither an .onnx file nor a model's directory",
            hint="name the directory with config.json and the weights, or an .onnx file",
        )
    names = onnx_source.data_files(path)
    print(f"copying {path.name}" + (f" and {len(names)} files of external data" if names else ""))
    model = onnx_source.read(path)
    if widening.has_half(model, "BFLOAT16"):
        print("bf16 becomes float32, in which a CPU runs the original")
        with TemporaryDirectory(dir=out.parent) as folder, mapped_weights.spilling(Path(folder)):
            _copy_files(path, names, Path(folder) / "original")
            onnx_files.save(widening.widened(onnx_files.load_mapped(Path(folder) / "original")), out)
    else:
        _copy_files(path, names, out)
    if qdq_operators.has_nvidias(model):
        print("NVIDIA's own Q/DQ operators become ONNX's of the same meaning")
        onnx_files.save(qdq_operators.standardized(onnx_files.load_graph(out)), out)
    changed = token_inputs.renamed(model) if tokens else {}
    if changed:
        print(f"inputs are renamed: {', '.join(f'{own} to {name}' for own, name in changed.items())}")
        onnx_files.save(token_inputs.standardized(onnx_files.load_graph(out)), out)


def _copy_files(path: Path, names: Sequence[str], out: Path) -> None:
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
