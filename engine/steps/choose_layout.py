"""Choose layout: a package is one Python model where that is measurably faster, else an ensemble."""

from __future__ import annotations

import json
from pathlib import Path
from typing import ClassVar, Self

from engine.kit.choice import candidates
from engine.kit.choice import layouts as kept
from engine.kit.choice.layouts import LayoutReport, LayoutsReport
from engine.kit.onnx import onnx_files
from engine.kit.triton.serving import AUTO, ENSEMBLE, FUSED
from engine.recipe.schema import Recipe
from engine.step import REPORT, Step, TypedReport


class ChooseLayout(Step):
    """Hand on the validated model with the name of the faster layout, by the figures of the step `measure-layouts`.

    The layout `ensemble` is kept unless the lead of `fused` is above the noise.
    """

    makes: ClassVar[str] = "laid_out"
    after: ClassVar[str | None] = "validate"
    carries_model: ClassVar[bool] = True
    in_lock: ClassVar[tuple[str, ...]] = ("layout",)
    report: ClassVar[type[TypedReport] | None] = LayoutReport

    @classmethod
    def for_recipe(cls, recipe: Recipe) -> Self | None:
        """Return the step for a recipe with `layout: auto`."""
        return cls() if recipe.package.triton.layout == AUTO else None

    def run(self, out: Path, *, validated: Path, layouts: Path) -> LayoutReport:
        """Write the model, and beside it the name of the chosen layout."""
        figures = LayoutsReport.from_json(json.loads((layouts / REPORT).read_text("utf-8")))
        chosen, lead = ENSEMBLE, None
        if FUSED in figures.layouts:
            chosen, leads = candidates.fastest(figures.layouts, ENSEMBLE)
            lead = leads[FUSED]
        out.mkdir(parents=True, exist_ok=True)
        onnx_files.link(validated, out)
        kept.write(out, chosen)
        report = LayoutReport(
            layout=chosen,
            lead=lead,
            absent=figures.absent,
            cpu=figures.cpu,
            threads=figures.threads,
            shapes=tuple(each.shape for each in figures.layouts[ENSEMBLE].latencies),
            server=figures.server,
        )
        print("\n".join(report.lines()))
        return report
