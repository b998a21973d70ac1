"""Layer search: which layers of a recipe must stay in a higher precision, found by builds that keep some of them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, cast

from engine.errors import HardwareError, JudgementError, PrecisionError, UsageError, UserError
from engine.kit.accuracy.gate import Bounded
from engine.kit.bench.race import P50, RaceRow
from engine.kit.inputs import bench_inputs
from engine.kit.onnx import onnx_files
from engine.kit.quantization.report import HALVES
from engine.runtimes import registry
from engine.text import lists
from engine.tuning import bisection, suspects
from engine.tuning.bisection import Kept
from engine.tuning.trials import BuiltTrial, Point, TrialBuilder

if TYPE_CHECKING:
    from engine.kit.accuracy.report import AccuracyReport
    from engine.kit.bench.stats import Lead
    from engine.recipe.schema import Recipe

_CASES = 3
"""The number of cases in which the tensors of both models are compared, for the order of suspicion."""
_MANY = 8
"""The number of needed layers from which on a third of all layers is too many to go on: each costs several builds."""


@dataclass(frozen=True)
class NeededLayer:
    """A layer that must be kept, and the bound that is missed if only this one is not kept."""

    name: str
    without: str
    missed: Mapping[str, object]
    """The same as numbers: the `measure`, its worst `value`, its `mean` and the `bound`; empty for another reason."""
    faster_without: Lead | None
    """How many times faster the model is without this one: what it costs; None where it is not measured."""


@dataclass(frozen=True)
class LayerReport:
    """What a search has found for a recipe."""

    recipe: str
    precision: str
    keeps_in: str
    """The precision in which the layers are kept."""
    builds: int
    layers: tuple[NeededLayer, ...]
    """The layers that must be kept, in the graph's order."""
    kept_already: tuple[str, ...]
    """The names in the recipe's own `quantize.keep_in`."""
    point: Point
    """The fields of the recipe that keep the layers."""
    notes: tuple[str, ...]
    """What could not be judged or measured on this machine."""


class LayerSearch:
    """The search for the layers of one variant of a recipe; `say` gets a line for each build."""

    def __init__(self, trials: TrialBuilder, say: Callable[[str], None]) -> None:
        """Plan the recipe. Raises UsageError where no layer can be kept."""
        session = trials.session({})
        self._trials, self._say = trials, say
        self._store = session.lookup.store
        self._recipe = session.variants[0].loaded.recipe
        self._keeps_in = _higher(self._recipe)
        written = cast("Mapping[str, Sequence[str]]", self._recipe.quantize.get("keep_in", {}))
        self._own = tuple(dict.fromkeys(name for names in written.values() for name in names))
        self._beside = ", and what the recipe keeps already" if self._own else ""
        self._written = written.get(self._keeps_in, ())
        self._layers: Sequence[str] = ()
        self._so_far: list[str] = []
        self._built: dict[Kept, BuiltTrial] = {}

    def run(self) -> LayerReport:
        """Build until the layers are known, and time them. Raises JudgementError where none help, else UserError."""
        kept = frozenset() if self._passes(frozenset()) else self._needed()
        answer = self._built[kept]
        if answer.error is not None:
            which = f"the accuracy is within the bounds with {', '.join(self._ordered(kept)) or 'no layer'} kept"
            raise PrecisionError(answer.error.what, [which, *answer.error.facts], answer.error.hint)
        notes: list[str] = []
        faster = self._faster_without(kept, answer.waits_for, notes.append)
        return LayerReport(
            recipe=self._recipe.name,
            precision=self._recipe.precision,
            keeps_in=self._keeps_in,
            builds=len(self._built),
            layers=tuple(
                NeededLayer(name, _figures(without), _numbers(without), faster.get(name))
                for name in self._ordered(kept)
                for without in [self._built[kept - {name}]]
            ),
            kept_already=self._own,
            point=self._point(kept),
            notes=tuple(notes),
        )

    def _needed(self) -> Kept:
        """Return the layers that must be kept. Raises JudgementError where even all of them are too few."""
        needed = bisection.smallest(self._suspected(self._built[frozenset()]), self._passes, self._so_far)
        if needed is None:
            figures = _figures(self._built[frozenset(self._layers)])
            what = f"no set of layers helps: even with all {len(self._layers)} kept{self._beside}, {figures}"
            raise JudgementError(what, hint="choose a higher precision; or, if this is close enough, loosen the bound")
        return needed

    def _suspected(self, first: BuiltTrial) -> Sequence[str]:
        """Note the layers of the model that missed a bound; return them in the order of suspicion."""
        original = suspects.original(first.summary, self._store)
        layers = suspects.layers_of(original, self._own, multiplying=self._recipe.precision not in HALVES)
        self._layers = tuple(layers)
        count = lists.counted(len(layers), "layer")
        try:
            place, compared = suspects.compare(first.summary, self._store, _CASES)
        except UserError as error:
            self._say(f"{count}, tried in the order of the graph: {error.what}")
            return self._layers
        self._say(f"{count}, tried in the order of what their tensors lose, {place}")
        return suspects.by_suspicion(layers, onnx_files.load_graph(original).graph, compared)

    def _passes(self, kept: Kept) -> bool:
        """Build the recipe with layers kept, and tell whether its accuracy is within the bounds.

        The share of the model that is in the recipe's precision is judged at the end: every kept layer lessens it.
        """
        if kept not in self._built:
            so_far = len(self._so_far)
            if so_far >= _MANY and so_far > len(self._layers) / 3:
                few = f"at least {so_far} of {len(self._layers)} layers must stay in {self._keeps_in}"
                raise JudgementError(f"this precision does not fit this model: {few}", hint="choose a higher precision")
            built = self._trials.build(self._point(kept))
            if built.error is not None and not isinstance(built.error, JudgementError):
                raise built.error
            if built.accuracy is None:
                raise HardwareError(f"the model can only be judged on {built.waits_for}", hint="search there")
            self._built[kept] = built
            mark = "within the bounds" if _is_accurate(built) else "missed"
            few = f"{so_far} found, {lists.counted(len(kept), 'layer')} kept{self._beside}"
            self._say(f"{len(self._built):4}  {few}: {mark}: {_figures(built)}")
        return _is_accurate(self._built[kept])

    def _point(self, kept: Kept) -> Point:
        """Return the fields of the recipe that keep layers, besides those that it names itself."""
        if not kept:
            return {}
        return {f"quantize.keep_in.{self._keeps_in}": [*self._written, *self._ordered(kept)]}

    def _ordered(self, kept: Kept) -> list[str]:
        """Return names in the order of the graph."""
        return [name for name in self._layers if name in kept]

    def _faster_without(self, kept: Kept, lacks: str | None, note: Callable[[str], None]) -> Mapping[str, Lead]:
        """Return for each kept layer how many times faster the model is without it; note why that is not known.

        The models without one of the layers miss a bound, and are timed all the same.
        """
        if lacks is not None:
            note(f"judged on the CPU, and not timed: this machine has no {lacks}")
        if lacks is not None or not kept:
            return {}
        names = self._ordered(kept)
        points = [self._point(kept), *(self._point(kept - {name}) for name in names)]
        raced = self._trials.race(points, sizes=bench_inputs.optima(self._recipe)[0], by=P50, cut=None)
        if raced.error is not None:
            note(f"not timed: {raced.error.what}")
        rows = zip(names, raced.report.rows[1:] if raced.report else (), strict=False)
        return {name: row.leads[P50] for name, row in rows if isinstance(row, RaceRow)}


def _higher(recipe: Recipe) -> str:
    """Return the precision in which layers are kept: the lowest that is possible. Raises UsageError without one."""
    able = registry.of(recipe).keeps_in(recipe) if recipe.precision != "fp32" else ()
    if not able:
        what = f"a build in {recipe.precision} with {recipe.target.runtime} keeps no layer in a higher precision"
        raise UsageError(what, hint="name a lower one, or one runtime: --set target.runtime=onnxruntime")
    return able[-1]


def _is_accurate(built: BuiltTrial) -> bool:
    return built.error is None or isinstance(built.error, PrecisionError)


def _figures(built: BuiltTrial) -> str:
    """Return the first missed bound of a build, without the sample where it is missed; else its accuracy."""
    if built.error is not None and not _is_accurate(built):
        return built.error.what.partition(": ")[2].partition(", ")[0] or built.error.what
    cosine, agreement = built.accuracy and built.accuracy.cosine, built.accuracy and built.accuracy.agreement
    figures = [f"cosine {cosine.worst:.6g} at worst"] if cosine else []
    return ", ".join([*figures, *([f"agreement {agreement.share:.4g}"] if agreement else [])])


def _numbers(built: BuiltTrial) -> Mapping[str, object]:
    """Return the first missed bound of a build as numbers; the mean is None for a number that has none."""
    gate = next(job.step for job in built.summary.variant.jobs if isinstance(job.step, Bounded))
    try:
        miss = gate.misses(cast("AccuracyReport", built.accuracy))[0]
    except (JudgementError, IndexError):
        return {}
    mean = getattr(getattr(built.accuracy, miss.number, None), "mean", None)
    return {"measure": miss.number, "value": miss.value, "mean": mean, "bound": miss.bound}
