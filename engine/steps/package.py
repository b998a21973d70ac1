"""Package: a Triton model repository of the validated model, with its tokenizer where it has one."""

from __future__ import annotations

from pathlib import Path
from typing import ClassVar, Self

from engine.kit.triton import repository
from engine.kit.triton.serving import Serving
from engine.recipe.schema import Recipe
from engine.step import Report, Step


class Package(Step):
    """Write the folders that Triton serves: the model, its tokenizer, and the ensemble of both."""

    makes: ClassVar[str] = "package"
    tools: ClassVar[tuple[str, ...]] = ("onnx", "protobuf", "tokenizers", "tritonclient")
    gates: ClassVar[tuple[str, ...]] = ("bench",)

    serving: Serving

    @classmethod
    def for_recipe(cls, recipe: Recipe) -> Self:
        """Every recipe makes a package."""
        return cls(serving=Serving.for_recipe(recipe))

    def run(self, out: Path, *, validated: Path, checkpoint: Path) -> Report:
        """Return what `repository.write` does. Raises StepError as it does."""
        return repository.write(out, self.serving, validated=validated, checkpoint=checkpoint)
