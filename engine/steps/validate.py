"""Validate: the built model against the original, sample by sample; what passes is the model, unchanged."""

from __future__ import annotations

from pathlib import Path
from typing import ClassVar, Self

from engine.kit import accuracy, hardware, onnx_files, runners
from engine.kit.judgement import Judged
from engine.recipe.schema import Recipe
from engine.step import Hardware, Report


class Validate(Judged):
    """Run the built model on every case of the reference and measure how far its answers are off."""

    makes: ClassVar[str] = "validated"
    tools: ClassVar[tuple[str, ...]] = ("numpy", "onnxruntime")
    facts: ClassVar[tuple[str, ...]] = ("cpu.isa", "onnxruntime.build")

    runs_on: Hardware | None = None
    """The GPU that runs the model; None for a CPU."""

    @classmethod
    def for_recipe(cls, recipe: Recipe) -> Self:
        """Every recipe is validated; a bound that it does not set has a default (`kit/bounds.py`)."""
        return cls(runs_on=hardware.wanted(recipe), **cls.asked(recipe))

    def hardware(self) -> Hardware | None:
        """Return the GPU that runs the model."""
        return self.runs_on

    def tools_used(self) -> tuple[str, ...]:
        """Return what runs the model: ONNX Runtime, or TensorRT on a GPU."""
        return self.tools if self.runs_on is None else ("numpy", self.runs_on.tool)

    def facts_used(self) -> tuple[str, ...]:
        """Return what chooses the kernels: the CPU's instructions and the build that runs on it, or the GPU."""
        return self.facts if self.runs_on is None else ("gpu.name",)

    def run(self, out: Path, *, compiled: Path, reference: Path, checkpoint: Path) -> Report:
        """Return what `accuracy.measure` finds, and the bytes of the model. Raises StepError as it does."""
        runner = runners.built(compiled, threads=1)  # sums in one order, however many cores there are
        report = accuracy.measure(runner.run, reference, checkpoint, self.task, what="the built model")
        onnx_files.link(compiled, out)
        return {**report, "bytes": sum(path.stat().st_size for path in out.rglob("*") if path.is_file())}
