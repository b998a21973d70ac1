"""Validate: the built model is compared with the original, sample by sample, and passed on unchanged."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar, Self

from engine.kit.accuracy import batching, built_model, thresholds
from engine.kit.accuracy.gate import Judged
from engine.kit.accuracy.report import AccuracyReport
from engine.kit.checkpoints import checkpoint as checkpoints
from engine.kit.onnx import onnx_files
from engine.runtimes.execution import Execution
from engine.step import Hardware, Section

if TYPE_CHECKING:
    from engine.recipe.schema import Recipe


class Validate(Judged):
    """Run the built model on every case of the reference, and measure the distance from the original's outputs."""

    makes: ClassVar[str] = "validated"
    section: ClassVar[Section | None] = Section.VALIDATION
    carries_model: ClassVar[bool] = True

    execution: Execution = Execution()
    least_in_batch: float = thresholds.in_batch("fp32", None)
    """The least likeness of rows, alone and in a batch, that a package joins.

    The field is no judged one: what `validate` writes beside the model depends on it.
    """

    @classmethod
    def for_recipe(cls, recipe: Recipe) -> Self:
        """Return the step `validate`, which every recipe needs.

        The default bounds on accuracy are in `kit/accuracy/thresholds.py`.
        """
        least = thresholds.in_batch(recipe.precision, recipe.validation.in_batch)
        step = cls.with_bounds(recipe, execution=Execution.for_recipe(recipe), least_in_batch=least)
        if recipe.runtime.runs_on_cpu(recipe.target):
            return step
        # The step `validate-onnx` counts the multiplications of such a model, and judges them.
        return step.model_copy(update={"precision_share": None, "opt": {}})

    def hardware(self) -> Hardware | None:
        return self.execution.needs

    def tools_used(self) -> tuple[str, ...]:
        reads = () if self.hardware() else onnx_files.TOOLS
        return tuple(dict.fromkeys((*self.execution.tools, *reads)))

    def facts_used(self) -> tuple[str, ...]:
        return self.execution.facts

    def code_used(self) -> tuple[str, ...]:
        return (*super().code_used(), *self.execution.code)

    def run(self, out: Path, *, compiled: Path, reference: Path, checkpoint: Path) -> AccuracyReport:
        """Return the report about the built model, with its size in bytes.

        Where a row's answer depends on the rows beside it, a file beside the model says which rows a package may join.

        Raises StepError where the model cannot run, takes none of the cases or has outputs of another shape than the
        original.
        """
        execution = self.execution.of_model(compiled)
        report = built_model.measure(
            compiled,
            execution,
            reference=reference,
            checkpoint=checkpoint,
            task=self.task,
            opt=self.opt,
            boxes_along=self.boxes_along,
        )
        onnx_files.link(compiled, out)
        joined = self.batching(report, self.least_in_batch)
        batching.write(out, joined)
        notes = _inputs_with_defaults(checkpoint, compiled)
        note = joined.note() if report.joins_no_rows is None else f"{report.joins_no_rows}: packaged without batching"
        return replace(report, notes=(*report.notes, *notes, *([] if note is None else [note])))


def _inputs_with_defaults(checkpoint: Path, compiled: Path) -> Iterator[str]:
    """Yield a note for each input of an ONNX file that has a default value, and is no input of the built model."""
    if checkpoints.kind(checkpoint) != "onnx":
        return
    has_graph = (compiled / onnx_files.MODEL).is_file()
    kept = onnx_files.optional_inputs(onnx_files.load_graph(compiled)) if has_graph else {}
    for name in onnx_files.optional_inputs(onnx_files.load_graph(checkpoint)):
        if name not in kept:
            yield f"the input {name} always has its default value: the built model does not take it"
