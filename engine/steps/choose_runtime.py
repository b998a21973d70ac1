"""Choose runtime: of the models that several runtimes run, the fastest that validates is handed on."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar, Self

from engine.errors import JudgementError
from engine.kit.accuracy.gate import Bounded
from engine.kit.choice import candidates as candidates_of
from engine.kit.choice.candidates import CandidatesReport
from engine.kit.choice.report import ChoiceReport, Compared
from engine.kit.onnx import onnx_files
from engine.runtimes import choice
from engine.step import REPORT, Section, TypedReport

if TYPE_CHECKING:
    from engine.recipe.schema import Recipe


class ChooseRuntime(Bounded):
    """Keep the fastest model that validates, by the figures of the step `measure-runtimes`.

    The first candidate that validates is the default. It is kept unless the lead of another one is above the noise. The
    choice follows from the figures and the bounds alone, so the bounds are rows of this step's key.
    """

    makes: ClassVar[str] = "compiled"
    section: ClassVar[Section | None] = Section.RUNTIME
    carries_model: ClassVar[bool] = True
    in_lock: ClassVar[tuple[str, ...]] = ("runtime",)
    report: ClassVar[type[TypedReport] | None] = ChoiceReport

    candidates: tuple[str, ...]

    @classmethod
    def for_recipe(cls, recipe: Recipe) -> Self | None:
        """Return the step for a runtime that stands for several; None for a runtime that is used as it is named."""
        candidates = recipe.runtime.candidates(recipe)
        if not candidates:
            return None
        # On a GPU, the step `validate-onnx` of each candidate counts the multiplications, and judges them.
        counted = {} if recipe.runtime.runs_on_cpu(recipe.target) else {"precision_share": None}
        return cls.with_bounds(recipe, candidates=candidates).model_copy(update={"opt": {}, **counted})

    def models_of(self) -> Mapping[str, str]:
        return {candidates_of.parameter(name): name for name in self.candidates}

    def inputs_used(self) -> tuple[str, ...]:
        """Return the measurement as the only input besides the models: `checked` is for recipes that do not choose."""
        return ("measured",)

    def run(self, out: Path, *, checked: Path | None = None, measured: Path, **models: Path) -> ChoiceReport:
        """Write the chosen model and the name of its runtime; without a model that validates, write no model."""
        del checked
        figures = CandidatesReport.from_json(json.loads((measured / REPORT).read_text("utf-8")))
        misses = {name: self._misses(figures, name) for name in self.candidates}
        valid = {name: figures.candidates[name] for name in self.candidates if not misses[name]}
        default = next(iter(valid), None)
        chosen, leads = (None, {}) if default is None else candidates_of.fastest(valid, default)
        out.mkdir(parents=True, exist_ok=True)
        if chosen is not None:
            onnx_files.link(models[candidates_of.parameter(chosen)], out)
            choice.write(out, chosen)
        latencies = next((each.latencies for each in figures.candidates.values()), ())
        report = ChoiceReport(
            runtime=chosen,
            default=default,
            cpu=figures.cpu,
            threads=figures.threads,
            gpu=figures.gpu,
            shapes=tuple(each.shape for each in latencies),
            order=self.candidates,
            candidates={
                name: Compared(
                    p50_ms=tuple(latency.p50_ms for latency in each.latencies),
                    lead=leads.get(name),
                    cosine=each.accuracy.cosine,
                    rejected=misses[name],
                )
                if (each := figures.candidates.get(name)) is not None
                else Compared(p50_ms=(), rejected=misses[name])
                for name in self.candidates
            },
        )
        print("\n".join([report.headline("chosen"), *report.lines()]))
        return report

    def judge(self, report: ChoiceReport) -> None:
        """Raise JudgementError where no candidate validates, with the missed bounds of each candidate."""
        if report.runtime is None:
            facts = [f"{name}: {text}" for name in report.order for text in report.candidates[name].rejected]
            raise JudgementError(
                "No runtime gives a model that keeps the bounds",
                facts,
                "choose a higher precision; or, if a model is close enough for you, set the bound under `validate`; or "
                "measure again: `--force measure-runtimes`",
            )

    def _misses(self, figures: CandidatesReport, name: str) -> tuple[str, ...]:
        """Return the missed bounds of a candidate, or why it is absent; empty for a candidate that validates."""
        if name in figures.absent:
            return (figures.absent[name],)
        try:
            self.refuse(figures.candidates[name].accuracy)
        except JudgementError as error:
            return (error.what, *error.facts)
        return ()
