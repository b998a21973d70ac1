"""Validate: the built model is compared with the original, sample by sample, and passed on unchanged."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import ClassVar, Self

from engine import tasks
from engine.errors import StepError
from engine.kit.accuracy import measure as accuracy
from engine.kit.accuracy.gate import Judged
from engine.kit.accuracy.report import AccuracyReport, Work
from engine.kit.checkpoints import checkpoint as checkpoints
from engine.kit.inputs import bench_inputs, cases
from engine.kit.onnx import onnx_files
from engine.recipe.schema import Recipe
from engine.runtimes.execution import Execution
from engine.runtimes.runner import Runner
from engine.step import Hardware, Section


class Validate(Judged):
    """Run the built model on every case of the reference, and measure the distance from the original's outputs."""

    makes: ClassVar[str] = "validated"
    section: ClassVar[Section | None] = Section.VALIDATION
    carries_model: ClassVar[bool] = True

    execution: Execution = Execution()
    opt: Mapping[str, int] = {}
    """The optimum of each axis in the first profile: the shape for which multiplications are counted."""

    @classmethod
    def for_recipe(cls, recipe: Recipe) -> Self:
        """Return the step `validate`, which every recipe needs.

        The default bounds on accuracy are in `kit/accuracy/thresholds.py`.
        """
        opt = {axis: int(extent.opt) for profile in recipe.profiles[:1] for axis, extent in profile.items()}
        return cls(execution=Execution.for_recipe(recipe), opt=opt, **cls.fields_of(recipe))

    def hardware(self) -> Hardware | None:
        """Return the GPU that the model runs on; None for a model that runs on the CPU."""
        return self.execution.hardware

    def tools_used(self) -> tuple[str, ...]:
        """Return the Python packages that run the model."""
        return self.execution.tools

    def facts_used(self) -> tuple[str, ...]:
        """Return the names of the machine's facts that decide which kernels run, and so the model's outputs."""
        return self.execution.facts

    def code_used(self) -> tuple[str, ...]:
        """Return the modules whose code is part of the key: the step's own, and the modules that run the model."""
        return (*super().code_used(), *self.execution.code)

    def run(self, out: Path, *, compiled: Path, reference: Path, checkpoint: Path) -> AccuracyReport:
        """Return the report of `accuracy.measure`, with the size of the model in bytes.

        Raises StepError where the model cannot run, takes none of the cases or has outputs of another shape than the
        original.
        """
        # On one thread, sums have the same order on every machine.
        new_tokens = 1 if tasks.generates(checkpoints.task(checkpoint, self.task)) else None
        runner = self.execution.by.runner(compiled, self.execution, name="built", threads=1, new_tokens=new_tokens)
        report = accuracy.measure(
            runner.run, reference, checkpoint, self.task, what="the built model", takes=runner.takes
        )
        onnx_files.link(compiled, out)
        return replace(report, work=self._work(runner, compiled, reference), bytes=onnx_files.folder_size(out))

    def _work(self, runner: Runner, compiled: Path, reference: Path) -> Work | None:
        """Return the shares of the multiplications in each precision; None where the runtime cannot count them.

        Models that refuse random inputs, such as speech models that take a sample rate, run on a case of the reference.
        """
        if runner.work is None:
            return None
        graph = onnx_files.load_graph(compiled)
        extents = bench_inputs.usual_extents(graph, self.opt)
        try:
            return Work.of(runner.work(bench_inputs.draw(graph, extents)), extents)
        except StepError as error:
            print(f"the multiplications are counted on a case: random inputs fail: {error.what}")
        return Work.of(runner.work(cases.load(reference)[0].inputs), {})
