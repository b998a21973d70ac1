"""Package: a Triton model repository of the validated model, with its tokenizer and its postprocessing."""

from __future__ import annotations

from pathlib import Path
from typing import ClassVar, Self

from engine.kit.onnx import onnx_files
from engine.kit.triton import repository, warmups
from engine.kit.triton.repository import PackageReport
from engine.kit.triton.serving import Serving
from engine.recipe import images
from engine.recipe.schema import Recipe
from engine.step import Source, Step, TypedReport
from engine.tasks import Modality


class Package(Step):
    """Write the folders that Triton serves: the model, the models before and after it, and the ensemble of all."""

    makes: ClassVar[str] = "package"
    delivers: ClassVar[bool] = True
    tools: ClassVar[tuple[str, ...]] = (*onnx_files.TOOLS, "tokenizers", "tritonclient")
    report: ClassVar[type[TypedReport] | None] = PackageReport
    gates: ClassVar[tuple[str, ...]] = ("bench",)

    serving: Serving
    warmup: tuple[Source, ...] = ()
    """The data files that warm-ups name."""
    warmup_names: tuple[str, ...] = ()
    """The names of the warm-ups' data files in the package."""

    @classmethod
    def for_recipe(cls, recipe: Recipe) -> Self:
        """Return the step `package`, which every recipe needs."""
        called = warmups.names(recipe)
        sources = tuple(Source(uri=uri) for uri in called)
        return cls(serving=Serving.for_recipe(recipe), warmup=sources, warmup_names=tuple(called.values()))

    def code_used(self) -> tuple[str, ...]:
        """Return the names of the modules whose code is part of the key: of the step, the runtime, task and answers."""
        return (*super().code_used(), *self.serving.code_used())

    def tools_used(self) -> tuple[str, ...]:
        """Return the Python packages that write the folders, and those whose versions the folders' models need."""
        tools = (*self.tools, *self.serving.execution.by.package_tools())
        return (*tools, "pillow") if images.modality(self.serving.images) is Modality.IMAGE else tools

    def run(self, out: Path, *, validated: Path, checkpoint: Path, **warmup: Path) -> PackageReport:
        """Write the package and return its report.

        Raises StepError where two models have one name, where Triton does not know a field of the recipe, or where
        Triton cannot serve the model.
        """
        files = {name: warmup[f"warmup_{number}"] for number, name in enumerate(self.warmup_names)}
        serving = self.serving.of_model(validated)
        return repository.write(out, serving, validated=validated, checkpoint=checkpoint, data=files)
