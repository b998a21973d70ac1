"""Choose layout: one Python model, and padded texts, where that is measurably faster; else an ensemble, unpadded."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar, Self

from engine.kit.accuracy import batching
from engine.kit.accuracy.batching import RowBatching
from engine.kit.bench.stats import Lead
from engine.kit.choice import candidates
from engine.kit.choice import layouts as kept
from engine.kit.choice.layouts import LayoutReport, LayoutsReport
from engine.kit.onnx import onnx_files
from engine.kit.triton.serving import AUTO, BUCKETS, ENSEMBLE, NO_PADDING
from engine.step import REPORT, Step, TypedReport

if TYPE_CHECKING:
    from engine.recipe.schema import Recipe


class ChooseLayout(Step):
    """Hand on the validated model with the names of layout and padding, by the figures of the step `measure-layouts`.

    The layout is kept whose worst case is the least bad beyond the noise, and `ensemble` where `fused` is no better. A
    package has no padding unless the lead of padded texts is above the noise. A model whose rows must not stand
    together has the layout `ensemble` and no padding.
    """

    makes: ClassVar[str] = "laid_out"
    after: ClassVar[str | None] = "validate"
    carries_model: ClassVar[bool] = True
    in_lock: ClassVar[tuple[str, ...]] = ("layout", "padding")
    report: ClassVar[type[TypedReport] | None] = LayoutReport

    padding: str = AUTO
    """The padding that the recipe names."""

    @classmethod
    def for_recipe(cls, recipe: Recipe) -> Self | None:
        """Return the step for a recipe with `layout: auto` or `padding: auto`."""
        triton = recipe.package.triton
        return cls(padding=triton.padding) if AUTO in {triton.layout, triton.padding} else None

    def run(self, out: Path, *, validated: Path, layouts: Path) -> LayoutReport:
        """Write the model, and beside it the name of the chosen layout."""
        figures = LayoutsReport.from_json(json.loads((layouts / REPORT).read_text("utf-8")))
        chosen, leads = kept.chosen(figures.layouts)
        padding = NO_PADDING if self.padding == AUTO else self.padding
        padding_leads: dict[str, Lead] = {}
        if figures.paddings:
            padding, padding_leads = candidates.fastest(figures.paddings, NO_PADDING)
        joins = batching.read(validated)
        if joins is not RowBatching.TOGETHER:
            print(joins.note())
            padding, padding_leads = NO_PADDING, {}
            if len(figures.layouts) > 1:
                chosen, leads = ENSEMBLE, {}
        out.mkdir(parents=True, exist_ok=True)
        onnx_files.link(validated, out)
        kept.write(out, chosen, padding)
        report = LayoutReport(
            layout=chosen,
            padding=padding,
            leads=leads,
            padding_lead=padding_leads.get(BUCKETS),
            absent=figures.absent,
            cpu=figures.cpu,
            threads=figures.threads,
            gpu=figures.gpu,
            server=figures.server,
        )
        print("\n".join(report.lines()))
        return report
