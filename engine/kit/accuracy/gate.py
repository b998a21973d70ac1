"""Gate: a model passes where its measured accuracy keeps the bounds of the recipe."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any, ClassVar, Self, TypeVar

from engine import tasks
from engine.kit.accuracy import batching, refusals, thresholds
from engine.kit.accuracy.batching import RowBatching
from engine.kit.accuracy.report import AccuracyReport, PrecisionShares
from engine.kit.accuracy.thresholds import DEFAULTS, Miss
from engine.kit.accuracy.variation import RANKED
from engine.kit.inputs import bench_inputs
from engine.machine import cpu
from engine.recipe.values import Bound, Metric, Precision
from engine.runtimes.preparation import Lowering
from engine.step import Step, TypedReport

if TYPE_CHECKING:
    from engine.recipe.postprocessing import Boxes
    from engine.recipe.schema import PackageSection, Recipe, Triton


_UNMEASURED = {
    "cosine": "no output is a vector, or all are too small to have a direction",
    "variation": "the outputs do not vary between the samples, or are near zero",
    "rank": f"no output is a single number, or there are fewer than {RANKED} samples",
    "agreement": "the outputs make no choice, or there are fewer than three texts",
    "metric": refusals.NO_METRIC,
    "perplexity": "the reference has no text",
}
"""Why a number with a bound could not be measured."""
_Number = TypeVar("_Number")
_CHANNELS = {"yolov8": 1, "yolov5": 2}
"""The layout of a detector's only output -> the axis with the numbers of a box and its scores."""


class Bounded(Step):
    """A step with the bounds of the recipe on the accuracy of a model."""

    keyed_if_set: ClassVar[tuple[str, ...]] = ("boxes_along",)

    task: str | None = None
    precision: Precision = "fp32"
    cosine: Bound | None = None
    agreement: Bound | None = None
    max_abs: Bound | None = None
    variation: Bound | None = None
    rank: Bound | None = None
    in_batch: Bound | None = None
    asks_to_join: tuple[str, ...] = ()
    """The fields under `package.triton` by which a recipe asks for batches of several requests."""
    asks_to_mix: tuple[str, ...] = ()
    """The fields under `package` by which a recipe asks for texts of different lengths in one batch."""
    precision_share: Bound | None = None
    perplexity: Bound | None = None
    metric: Metric | None = None
    weights_only: bool = False
    """Whether the recipe's precision is that of stored weights only, and not of the multiplications."""
    lowers_fp32: bool = False
    """Whether the runtime may compute a model in fp32 in a lower precision, which no recipe in fp32 means."""
    has_full_range: bool = False
    """Whether weights of dynamic int8 for a CPU have all 8 bits. Sums of their products can saturate without VNNI."""
    boxes_along: Mapping[str, int] = {}
    """The output that holds boxes and scores -> the axis along which they lie, the four numbers of a box first.

    The name "" stands for the only output. The recipe's post-processing says it.
    """
    opt: Mapping[str, int] = {}
    """The optimum of each axis in the first profile: the shape for which multiplications are counted."""

    @classmethod
    def with_bounds(cls, recipe: Recipe, **own: Any) -> Self:
        """Return the step with the bounds of a recipe, and with fields of its own.

        Where a bound in the recipe is None, the method `refuse` takes the default bound from the module `thresholds`.
        """
        validation = recipe.validation
        lowering = recipe.runtime.lowering(recipe)
        same = ("cosine", "agreement", "max_abs", "variation", "rank", "in_batch", "precision_share", "metric")
        bounds: dict[str, Any] = {name: getattr(validation, name) for name in same}
        if recipe.falls_back:
            bounds["precision_share"] = Bound(at_least=0)  # the step `quantize` has judged the share
        return cls(
            **bounds,
            task=recipe.model.task,
            precision=recipe.precision,
            asks_to_join=_asks_to_join(recipe.package.triton),
            asks_to_mix=_asks_to_mix(recipe.package),
            perplexity=None if validation.perplexity is None else validation.perplexity.bound,
            weights_only=recipe.runtime.weights_only(recipe),
            lowers_fp32=recipe.runtime.lowers_fp32,
            has_full_range=lowering is Lowering.DYNAMIC and recipe.target.isa is None,
            boxes_along=_boxes_along(recipe),
            opt=bench_inputs.optima(recipe)[0],
            **own,
        )

    def code_used(self) -> tuple[str, ...]:
        """Return the modules whose code is a row of the key: the step's own modules and the task's.

        The code of the task is part of the key, because the task decides how outputs are compared.
        """
        return (*super().code_used(), *tasks.modules(self.task))

    def refuse(self, report: AccuracyReport) -> None:
        """Compare the numbers of the report with the recipe's bounds, or with the default bounds of the precision.

        Raises JudgementError where a bound is missed, where the built model gives numbers that are not finite, outputs
        of another size or two answers to the same inputs, and where the original gives no finite number for a sample.
        """
        if report.reshaped:
            raise refusals.other_size(report.reshaped, self.precision)
        if report.unanswered:
            raise refusals.unanswered(report.unanswered)
        if report.nonfinite:
            raise refusals.not_finite(report.nonfinite, self.precision)
        if report.undecided:
            raise refusals.undecided(report.undecided)
        means_fp32 = self.lowers_fp32 and self.precision == "fp32" and self.precision_share is None
        if report.work is not None and means_fp32 and report.work.reached("bf16", weights_only=False):
            raise refusals.bf16_for_fp32(report.work)
        if misses := self.misses(report):
            raise refusals.too_far(misses, report, self.precision, saturates=self.has_full_range and cpu.lacks_vnni())
        self._judge_batches(report)
        if report.work is not None:
            self._judge_shares(report.work)
        elif self.precision_share is not None:
            raise refusals.unmeasured("precision_share", "the runtime of this target does not count multiplications")

    def misses(self, report: AccuracyReport) -> list[Miss]:
        """Return the bounds that a report misses. Raises JudgementError for one on a number that was not measured."""
        return [*self._missed_distances(report), *self._missed_shares(report)]

    def _missed_distances(self, report: AccuracyReport) -> Iterator[Miss]:
        default = DEFAULTS[self.precision]
        sample, missed = thresholds.sample, thresholds.missed
        if (cosine := self._measured("cosine", report.cosine)) is not None:
            yield from missed("cosine", cosine.worst, self.cosine or Bound(at_least=default.cosine), sample(cosine))
        if (largest := report.max_abs) is not None:
            yield from missed("max_abs", largest.worst, self.max_abs, sample(largest))
        if (relative := report.relative) is not None and self.max_abs is None:
            name = "the error as a share of the output's largest value (unless max_abs is set)"
            yield from missed(name, relative.worst, Bound(at_most=default.relative), sample(relative))
        # A bound of the recipe on the error turns the default bound on the variation off.
        is_lenient = self.cosine is not None or self.max_abs is not None
        if (variation := self._measured("variation", report.variation)) is not None:
            bound = self.variation or Bound(at_least=thresholds.CONSTANT if is_lenient else default.variation)
            name = "the share of the output's variation (variation)"
            yield from missed(name, variation.worst, bound, f", output {variation.output}")
        if (faint := report.variation_near_zero) is not None:
            name, bound = "the share of the variation of an output near zero", Bound(at_least=thresholds.CONSTANT)
            yield from missed(name, faint.worst, bound, f", output {faint.output}")
        if (rank := self._measured("rank", report.rank)) is not None:
            bound = self.rank or Bound(at_least=default.rank)
            yield from missed("the rank correlation (rank)", rank.worst, bound, f", output {rank.output}")

    def _missed_shares(self, report: AccuracyReport) -> Iterator[Miss]:
        default, missed = DEFAULTS[self.precision], thresholds.missed
        if (agreement := self._measured("agreement", report.agreement)) is not None:
            # The default bound finds broken models, so near ties keep it; a bound of the recipe is on equal choices.
            bound = Bound(at_least=thresholds.allowed_changes(default.agreement, agreement.choices))
            number, share = "agreement", agreement.share
            if self.agreement is None and agreement.near_ties:
                number, share = "agreement with near ties", agreement.with_near_ties
            differ = f", differing: {refusals.names_of(agreement.differ)}" if agreement.differ else ""
            yield from missed(number, share, self.agreement or bound, differ)
        if self.metric is not None and (metric := self._measured("metric", report.metric)) is not None:
            original = f" (the original: {metric.original:.6g}, of {metric.samples} samples)"
            yield from missed(self.metric.name, metric.value, self.metric, original)
        if (text := self._measured("perplexity", report.perplexity)) is not None:
            if text.original is None:
                raise refusals.unanswered(["the text of validate.perplexity"])
            if text.ratio is None or text.value is None:
                raise refusals.not_finite(["the text of validate.perplexity"], self.precision)
            bound = self.perplexity or Bound(at_most=default.perplexity)
            where = f" (perplexity {text.value:.6g}, of the original {text.original:.6g}, {text.tokens} tokens)"
            yield from missed("the ratio of the perplexities (perplexity)", text.ratio, bound, where)

    def _measured(self, number: str, value: _Number | None) -> _Number | None:
        """Return a measured number. Raises JudgementError where the recipe bounds it, and it could not be measured."""
        if value is None and getattr(self, number) is not None:
            raise refusals.unmeasured(number, _UNMEASURED[number])
        return value

    @staticmethod
    def batching(report: AccuracyReport, least: float) -> RowBatching:
        """Return which rows a package of the model may join; `least` is the bound on the likeness `in_batch`."""
        if report.joins_no_rows is not None:
            return RowBatching.ALONE
        if report.in_equal_batch is not None and report.in_equal_batch.worst < least:
            return RowBatching.ALONE
        is_alike = report.in_batch is None or report.in_batch.worst >= least
        return RowBatching.TOGETHER if is_alike else RowBatching.EQUAL_LENGTHS

    def _judge_batches(self, report: AccuracyReport) -> None:
        """Raise JudgementError where the recipe asks for batches, and a row's answer depends on the rows beside it."""
        if self.in_batch is not None and report.in_batch is None and report.joins_no_rows is None:
            raise refusals.unmeasured("in_batch", "the model takes no batches")
        least = thresholds.in_batch(self.precision, self.in_batch)
        rows = self.batching(report, least)
        joins = self.asks_to_join if rows is RowBatching.ALONE else ()
        mixes = self.asks_to_mix if rows is not RowBatching.TOGETHER else ()
        if joins or mixes:
            raise refusals.joined([*joins, *mixes], report, least)

    def _judge_shares(self, work: PrecisionShares) -> None:
        """Raise JudgementError where too few of the multiplications are in the precision of the recipe.

        Of a model that is quantized by its weights alone, the multiplications with weights of the precision count.
        """
        default = None if self.precision == "fp32" else Bound(at_least=thresholds.PRECISION_SHARE)
        reached = work.reached(self.precision, weights_only=self.weights_only)
        misses = thresholds.missed("precision_share", reached, self.precision_share or default)
        if misses:
            raise refusals.too_little(misses[0], reached, work, self.precision, weights_only=self.weights_only)


def _boxes_along(recipe: Recipe) -> dict[str, int]:
    boxes: Boxes | None = getattr(recipe.postprocess, "boxes", None)
    if boxes is None or boxes.layout not in _CHANNELS:
        return {}
    return {next(iter(boxes.outputs), ""): _CHANNELS[boxes.layout]}


def _asks_to_join(triton: Triton) -> tuple[str, ...]:
    """Return the fields of a recipe that ask for batches of several requests, as the recipe has them."""
    most = triton.max_batch_size
    fields = [] if most is None or most <= 1 else [f"max_batch_size: {most}"]
    return (*fields, *(["dynamic_batching"] if "dynamic_batching" in (triton.model_extra or {}) else []))


def _asks_to_mix(package: PackageSection) -> tuple[str, ...]:
    """Return the fields of a recipe that ask for texts of different lengths in one batch, as the recipe has them."""
    triton = package.triton
    fields = batching.mixing(layout=triton.layout, padding=triton.padding, doc_stride=package.answers.doc_stride)
    return tuple(f"{field.rpartition('.')[2]}: {value}" for field, value in fields.items())


class Judged(Bounded):
    """A step that compares a model with the original, and fails where a bound of the recipe is missed."""

    report: ClassVar[type[TypedReport] | None] = AccuracyReport
    judged: ClassVar[tuple[str, ...]] = (
        *(name for name in Bounded.model_fields if name not in {"task", "opt", "boxes_along"}),
        "accepts_all",
    )

    accepts_all: bool = False
    """Whether no bound holds: a search times a model that misses one, to say what the bound costs."""

    def judge(self, report: AccuracyReport) -> None:
        """Compare the numbers of the report with the bounds. Raises JudgementError where a bound is missed."""
        if not self.accepts_all:
            self.refuse(report)
