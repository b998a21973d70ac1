"""Package: a Triton model repository of the validated model, with what stands before and behind it."""

from __future__ import annotations

from pathlib import Path
from typing import ClassVar, Self

from engine.kit.triton import repository, warmups
from engine.kit.triton.repository import PackageReport
from engine.kit.triton.serving import Serving
from engine.recipe import images
from engine.recipe.schema import Recipe
from engine.step import Source, Step, TypedReport
from engine.tasks import Modality


class Package(Step):
    """Write the folders that Triton serves: the model, what stands before and behind it, and the ensemble of all."""

    makes: ClassVar[str] = "package"
    delivers: ClassVar[bool] = True
    tools: ClassVar[tuple[str, ...]] = ("onnx", "protobuf", "tokenizers", "tritonclient")
    report: ClassVar[type[TypedReport] | None] = PackageReport
    gates: ClassVar[tuple[str, ...]] = ("bench",)

    serving: Serving
    warmup: tuple[Source, ...] = ()
    """Files of data that warm-ups name."""
    warmup_names: tuple[str, ...] = ()
    """How the package calls them."""

    @classmethod
    def for_recipe(cls, recipe: Recipe) -> Self:
        """Every recipe makes a package."""
        called = warmups.names(recipe)
        sources = tuple(Source(uri=uri) for uri in called)
        return cls(serving=Serving.for_recipe(recipe), warmup=sources, warmup_names=tuple(called.values()))

    def code_used(self) -> tuple[str, ...]:
        """Return this module, the runtime, the task, and what makes the answers to it."""
        return (*super().code_used(), *self.serving.code_used())

    def tools_used(self) -> tuple[str, ...]:
        """Return what writes the package, and what its own Python code is pinned to."""
        return (*self.tools, "pillow") if images.modality(self.serving.images) is Modality.IMAGE else self.tools

    def run(self, out: Path, *, validated: Path, checkpoint: Path, **warmup: Path) -> PackageReport:
        """Return what `repository.write` does. Raises StepError as it does."""
        files = {name: warmup[f"warmup_{number}"] for number, name in enumerate(self.warmup_names)}
        return repository.write(out, self.serving, validated=validated, checkpoint=checkpoint, data=files)
