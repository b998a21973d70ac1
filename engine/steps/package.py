"""Package: a Triton model repository of the validated model, with its tokenizer and its postprocessing."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar, Self

from engine.kit.checkpoints import checkpoint as checkpoints
from engine.kit.checkpoints import licenses
from engine.kit.onnx import onnx_files
from engine.kit.triton import notices, repository, warmups
from engine.kit.triton.repository import PackageReport
from engine.kit.triton.serving import Serving
from engine.recipe.licenses import NOT_KNOWN
from engine.server import deployable
from engine.server.deployable import PackageOrigin
from engine.step import Source, Step, TypedReport

if TYPE_CHECKING:
    from engine.recipe.schema import Recipe


class Package(Step):
    """Write the folders that Triton serves: the model, the models before and after it, and the ensemble of all."""

    makes: ClassVar[str] = "package"
    delivers: ClassVar[bool] = True
    tools: ClassVar[tuple[str, ...]] = (*onnx_files.TOOLS, "tokenizers", "tritonclient")
    report: ClassVar[type[TypedReport] | None] = PackageReport
    gates: ClassVar[tuple[str, ...]] = ("bench",)
    keyed_if_set: ClassVar[tuple[str, ...]] = ("not_verified",)

    serving: Serving
    warmup: tuple[Source, ...] = ()
    """The data files that warm-ups name."""
    warmup_names: tuple[str, ...] = ()
    """The names of the warm-ups' data files in the package."""
    not_verified: str | None = None
    """Why nobody knows whether the recipe's Triton image loads the model; None where that is known."""

    license: Source | None = None
    """The files that say something about the model's licence; None for a step that was made without a recipe."""
    tokenizer_license: Source | None = None
    """The same of a tokenizer that comes from elsewhere than the model."""
    image: str | None = None
    """The image of the server that the recipe names."""

    @classmethod
    def for_recipe(cls, recipe: Recipe) -> Self:
        """Return the step `package`, which every recipe needs."""
        called = warmups.names(recipe)
        sources = tuple(Source(uri=uri) for uri in called)
        model = recipe.model
        return cls(
            serving=Serving.for_recipe(recipe),
            warmup=sources,
            warmup_names=tuple(called.values()),
            license=Source(uri=model.source, revision=model.revision, part="license"),
            tokenizer_license=Source(uri=model.tokenizer, part="license") if model.tokenizer else None,
            image=recipe.package.triton.image,
            not_verified=recipe.runtime.not_verified(recipe),
        )

    def code_used(self) -> tuple[str, ...]:
        return (*super().code_used(), *self.serving.code_used())

    def tools_used(self) -> tuple[str, ...]:
        return self._tools_of(self.serving)

    def _tools_of(self, serving: Serving) -> tuple[str, ...]:
        """Return the tools that write a package; a serving with a chosen runtime needs that runtime's only."""
        tools = (*self.tools, *serving.execution.package_tools)
        return tools if serving.images is None else (*tools, "pillow")

    def run(
        self,
        out: Path,
        *,
        validated: Path,
        checkpoint: Path,
        license: Path | str | None = None,  # noqa: A002 - the name of the field
        tokenizer_license: Path | str | None = None,
        **warmup: Path,
    ) -> PackageReport:
        """Write the package with its licences and its bill of materials, and return its report.

        Raises StepError where two models have one name, where Triton does not know a field of the recipe, or where
        Triton cannot serve the model.
        """
        files = {name: warmup[f"warmup_{number}"] for number, name in enumerate(self.warmup_names)}
        serving = self.serving.of_model(validated)
        report = repository.write(out, serving, validated=validated, checkpoint=checkpoint, data=files)
        sources = [("model", self.license, license), ("tokenizer", self.tokenizer_license, tokenizer_license)]
        stated = [licenses.of_source(*each) for each in sources if each[0] == "model" or each[1] is not None]
        if report.models:
            origin = PackageOrigin(
                source=stated[0].about.source,
                revision=stated[0].about.revision or NOT_KNOWN,
                task=checkpoints.task(checkpoint, serving.task),
                runtime=serving.execution.runtime,
            )
            deployable.write(out, report.name, image=self.image, origin=origin)
        known = notices.write(
            out, stated, name=report.name, checkpoint=checkpoint, tools=self._tools_of(serving), image=self.image
        )
        return replace(report, licenses=known, not_verified=self.not_verified, bytes=onnx_files.folder_size(out))
