"""Fallback: a model of images stays in fp32 where int8 is too far from the original, or too little of it is in int8."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Self

from engine.errors import JudgementError
from engine.kit.accuracy import built_model, thresholds
from engine.kit.accuracy.gate import Bounded, falls_back
from engine.kit.inputs import bench_inputs
from engine.recipe.values import Bound
from engine.runtimes.execution import Execution
from engine.step import Frozen

if TYPE_CHECKING:
    from engine.recipe.schema import Recipe


class Fallback(Frozen):
    """How an int8 model is compared with the original, to decide whether it is kept."""

    execution: Execution
    task: str | None
    opt: Mapping[str, int]

    @classmethod
    def for_recipe(cls, recipe: Recipe) -> Self | None:
        """Return the comparison for a recipe that leaves the decision to it; else None."""
        if not falls_back(recipe):
            return None
        execution = Execution.for_recipe(recipe)
        return cls(execution=execution, task=recipe.model.task, opt=bench_inputs.optima(recipe)[0])

    def shortcoming(self, quantized: Path, reference: Path, checkpoint: Path) -> str | None:
        """Return why the default bounds of int8 refuse the model in a folder; None where they hold."""
        report = built_model.measure(
            quantized, self.execution, reference=reference, checkpoint=checkpoint, task=self.task, opt=self.opt
        )
        share = Bound(at_least=thresholds.PRECISION_SHARE)
        try:
            Bounded(task=self.task, precision="int8", precision_share=share).refuse(report)
        except JudgementError as error:
            return "; ".join([f"in int8, {error.what[0].lower()}{error.what[1:]}", *error.facts])
        return None
