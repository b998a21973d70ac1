"""Layer search: which layers of a recipe must stay in a higher precision, found by builds that keep some of them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, cast

from engine.builder import facts
from engine.errors import HardwareError, JudgementError, PrecisionError, UsageError, UserError
from engine.kit.onnx import graphs, onnx_files
from engine.kit.quantization.report import HALVES
from engine.runtimes import registry
from engine.step import Section
from engine.text import lists
from engine.tuning import bisection, layer_costs, suspects
from engine.tuning.bisection import Kept
from engine.tuning.suspects import SuspectLayer
from engine.tuning.trials import VALIDATE, BuiltTrial, Point, TrialBuilder

if TYPE_CHECKING:
    from engine.builder.job import Job
    from engine.kit.accuracy.report import AccuracyReport
    from engine.kit.bench.stats import Lead
    from engine.recipe.schema import Recipe

_CASES = 3
"""The number of cases in which the tensors of both models are compared, for the order of suspicion."""


@dataclass(frozen=True)
class Evaluation:
    """One build of the recipe: the layers that it keeps, and whether its accuracy is within the bounds."""

    number: int
    kept: tuple[str, ...]
    passes: bool
    figures: str
    """The accuracy, or the first bound that is missed."""


@dataclass(frozen=True)
class NeededLayer:
    """A layer that must be kept, with its operators, and the bound that is missed if only this one is not kept."""

    name: str
    operators: tuple[str, ...]
    without: str
    faster_without: Lead | None = None
    """How many times faster the model is without this one: what it costs; None where it is not measured."""


@dataclass(frozen=True)
class LayerReport:
    """What a search has found for a recipe."""

    recipe: str
    precision: str
    keeps_in: str
    """The precision in which the layers are kept."""
    judged_by: str
    """The step that judges: `validate`, or `validate-onnx` on a CPU where the GPU of the recipe is not here."""
    candidates: int
    evaluations: tuple[Evaluation, ...]
    layers: tuple[NeededLayer, ...] | None
    """The layers that must be kept, in the graph's order; None where the accuracy misses a bound with all kept."""
    is_monotone: bool
    """Whether each build that keeps all layers of one within the bounds, and more, is within the bounds, too."""
    point: Point
    """The fields of the recipe that keep the layers."""
    error: UserError | None
    """Why the recipe with these layers fails though its accuracy is within the bounds."""
    not_timed: str = ""
    """Why it is not measured what the layers cost in latency."""


class LayerSearch:
    """The search for the layers of one variant of a recipe; `tell` gets each evaluation, and `say` what is to know."""

    def __init__(
        self, trials: TrialBuilder, keeps_in: str | None, tell: Callable[[Evaluation], None], say: Callable[[str], None]
    ) -> None:
        """Plan the recipe; `keeps_in` is the precision to keep layers in, None for the nearest that is possible.

        Raises UsageError where no layer can be kept, HardwareError where nothing can be judged on this machine.
        """
        session = trials.session({})
        if len(session.variants) > 1:
            names = [variant.name for variant in session.variants]
            raise UsageError("layers are searched for in one variant", names, "choose one: --only K=V")
        self._trials, self._tell, self._say = trials, tell, say
        self._store = session.lookup.store
        self.recipe = session.variants[0].loaded.recipe
        self.keeps_in = _precision(self.recipe, keeps_in)
        self.judged_by = _judge(session.variants[0].jobs)
        self._layers: list[SuspectLayer] = []
        self._outcomes: dict[Kept, BuiltTrial] = {}
        self._evaluations: dict[Kept, Evaluation] = {}

    def run(self) -> LayerReport:
        """Build until the layers are known. Raises UserError where a build fails for another reason than a bound."""
        if self._passes(frozenset()):
            result = bisection.Bisected((), 1)
        else:
            order = self._suspected(self._outcomes[frozenset()])
            result = bisection.smallest([layer.name for layer in order], self._passes)
        kept = frozenset(result.needed or ())
        needed = tuple(
            NeededLayer(layer.name, layer.operators, self._evaluations[kept - {layer.name}].figures)
            for layer in self._layers
            if layer.name in kept
        )
        return LayerReport(
            recipe=self.recipe.name,
            precision=self.recipe.precision,
            keeps_in=self.keeps_in,
            judged_by=self.judged_by,
            candidates=len(self._layers),
            evaluations=tuple(self._evaluations.values()),
            layers=None if result.needed is None else needed,
            is_monotone=result.contradiction is None,
            point=self.point(kept),
            error=self._outcomes[kept].error if result.needed is not None else None,
        )

    def with_costs(self, report: LayerReport) -> LayerReport:
        """Return a report with what each of its layers costs in latency, where this machine can time the model."""
        if self.judged_by != VALIDATE:
            return replace(report, not_timed="the GPU of the recipe is not here")
        layers = report.layers or ()
        kept = frozenset(layer.name for layer in layers)
        try:
            leads = layer_costs.measured(
                self._trials, report.point, {name: self.point(kept - {name}) for name in sorted(kept)}
            )
        except UserError as error:
            return replace(report, not_timed=error.what)
        timed = tuple(replace(layer, faster_without=leads.get(layer.name)) for layer in layers)
        return replace(report, layers=timed)

    def point(self, kept: Kept) -> Point:
        """Return the fields of the recipe that keep layers, besides those that it names itself."""
        if not kept:
            return {}
        written = cast("Mapping[str, Sequence[str]]", self.recipe.quantize.get("keep_in", {}))
        names = (layer.name for layer in self._layers if layer.name in kept)
        return {f"quantize.keep_in.{self.keeps_in}": list(dict.fromkeys((*written.get(self.keeps_in, ()), *names)))}

    def _passes(self, kept: Kept) -> bool:
        """Build the recipe with layers kept, and tell whether its accuracy is within the bounds.

        The share of the model that is in the recipe's precision is judged at the end: every kept layer lessens it.
        """
        if kept not in self._evaluations:
            outcome = self._trials.build(self.point(kept), (self.judged_by,))
            error = outcome.error
            if outcome.waits_for is not None:
                raise HardwareError(f"the build waits for {outcome.waits_for}")
            if error is None or isinstance(error, PrecisionError):
                passes, figures = True, _figures(outcome.accuracy)
            elif isinstance(error, JudgementError):
                passes, figures = False, _missed(error)
            else:
                raise error
            names = tuple(layer.name for layer in self._layers if layer.name in kept)
            self._outcomes[kept] = outcome
            self._evaluations[kept] = Evaluation(len(self._evaluations) + 1, names, passes, figures)
            self._tell(self._evaluations[kept])
        return self._evaluations[kept].passes

    def _suspected(self, first: BuiltTrial) -> Sequence[SuspectLayer]:
        """Note the layers of the model that missed a bound; return them in the order of suspicion."""
        jobs = first.summary.variant.jobs
        artifacts = [(job.step.makes, first.records[job.name].artifact) for job in jobs if job.name in first.records]
        folders = {output: self._store.artifact_path(artifact) for output, artifact in artifacts}
        original = folders[suspects.ORIGINAL]
        self._layers = _layers(self.recipe, self.keeps_in, original)
        count = lists.counted(len(self._layers), "layer")
        try:
            place, compared = suspects.compare(jobs, folders, _CASES)
        except UserError as error:
            self._say(f"{count}, tried in the order of the graph: {error.what}")
            return self._layers
        self._say(f"{count}, tried in the order of what their tensors lose, {place}")
        return suspects.by_suspicion(self._layers, onnx_files.load_graph(original).graph, compared)


def _precision(recipe: Recipe, chosen: str | None) -> str:
    """Return the precision in which layers are kept: the chosen one, else the lowest that is possible."""
    able = registry.of(recipe).keeps_in(recipe) if recipe.precision != "fp32" else ()
    runtime = recipe.target.runtime
    if not able:
        what = f"a build in {recipe.precision} with {runtime} keeps no layer in a higher precision"
        hint = "say the lower precision: --set precision=int8" if recipe.precision == "fp32" else ""
        raise UsageError(what, hint=hint)
    if chosen is not None and chosen not in able:
        what = f"a build in {recipe.precision} with {runtime} keeps no layer in {chosen}"
        raise UsageError(what, hint=f"it can keep layers in {' or '.join(able)}")
    return chosen or able[-1]


def _judge(jobs: Sequence[Job]) -> str:
    """Return the step that judges on this machine. Raises HardwareError where the recipe has none."""
    judges = {job.step.section: job for job in jobs}
    last = judges[Section.VALIDATION]
    hardware = last.step.hardware()
    if hardware is None or facts.can_run(hardware):
        return last.name
    if Section.VALIDATION_ONNX not in judges:
        raise HardwareError(f"the model can only be judged on {hardware}", hint="run it on a machine with that GPU")
    return judges[Section.VALIDATION_ONNX].name


def _layers(recipe: Recipe, keeps_in: str, original: Path) -> list[SuspectLayer]:
    """Return the layers of the original model that the recipe's precision may spoil, in the order of its graphs."""
    # Beside int8 in fp16, any operator may need fp32; low bits are only for what multiplies, and for tables.
    is_half = recipe.precision in HALVES or keeps_in != registry.of(recipe).keeps_in(recipe)[-1]
    every = [
        layer
        for folder in graphs.folders(original)
        for layer in suspects.layers_of(onnx_files.load_graph(original / folder).graph, multiplying=not is_half)
    ]
    return list({layer.name: layer for layer in every}.values())


def _figures(accuracy: AccuracyReport | None) -> str:
    cosine = None if accuracy is None else accuracy.cosine
    agreement = None if accuracy is None else accuracy.agreement
    figures = [] if cosine is None else [f"cosine {cosine.worst:.6g} at worst"]
    figures += [] if agreement is None else [f"agreement {agreement.share:.4g}"]
    return ", ".join(figures)


def _missed(error: UserError) -> str:
    """Return the first missed bound of an error, without the sample where it is missed."""
    return error.what.partition(": ")[2].partition(", ")[0] or error.what
