"""Sample batches: measures a model and its rivals on a recipe's samples, cut into batches in two orders."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

from engine.errors import StepError
from engine.kit.bench import budgets, interleaving, sample_rows, stats
from engine.kit.bench.budgets import Limits
from engine.kit.bench.interleaving import Budget, Call, Clock, Contender, TimedCalls, TimedRow
from engine.kit.bench.sample_report import ORDERS, Batching, SampleFigures, SampleLengths, SampleOrder
from engine.kit.bench.sample_rows import SampleRows
from engine.recipe.fields import OF_SAMPLES
from engine.runtimes import axes
from engine.text import lists

if TYPE_CHECKING:
    import numpy as np

    from engine.kit.onnx.onnx_files import Input

    Tensors = Mapping[str, np.ndarray]

Shape = Mapping[str, int | str]
_SIZES = (1, 4, 8)
"""The batch sizes that are measured besides the shape's own."""
_LEAST_ROUNDS = 3
"""The least number of rounds, however long a sweep takes; fewer rounds have no confidence interval."""


@dataclass(frozen=True, eq=False)
class Sweep:
    """A model and all samples as batches of one size, in one order, which the model computes one after another."""

    contender: Contender
    size: int
    order: SampleOrder
    batches: Sequence[Tensors]

    @property
    def positions(self) -> int:
        """The number of positions that the model computes, padding included."""
        return sum(batch["input_ids"].size for batch in self.batches)


@dataclass(frozen=True)
class _Measured:
    """Sweeps with their calls, of which a round holds whole sweeps, and the lengths of the samples."""

    timed: Mapping[Sweep, TimedCalls]
    lengths: Sequence[int]

    def seconds(self, sweep: Sweep) -> list[float]:
        """Return the mean seconds of a whole sweep in each round."""
        return [sum(calls) * len(sweep.batches) / len(calls) for calls in self.timed[sweep].hot]

    def ratios(self, slow: Sweep, fast: Sweep) -> list[float]:
        """Return for each round how many times longer one sweep takes than another."""
        return [theirs / mine for theirs, mine in zip(self.seconds(slow), self.seconds(fast), strict=True)]

    def per_second(self, count: int, sweep: Sweep) -> float:
        """Return how many of `count` things in the samples a model computes per second."""
        return round(count / stats.median(self.seconds(sweep)), 1)

    def figures(self, sweep: Sweep, slow: Sweep | None) -> dict[str, Any]:
        """Return the fields about padding, throughput, and the gain over the sweep `slow`, if there is another one."""
        gains = None if slow is None or slow is sweep else self.ratios(slow, sweep)
        return {
            "order": sweep.order,
            "padding": _padding(self.lengths, sweep.positions),
            "texts_per_s": self.per_second(len(self.lengths), sweep),
            "gain": None if gains is None else round(stats.median(gains), stats.RATIO_DIGITS),
            "gain_interval": None if gains is None else stats.rounded_interval(gains),
        }


def measured(
    shape: Shape,
    rows: SampleRows,
    contenders: Sequence[Contender],
    budget: Budget,
    limits: Limits,
    *,
    until: float,
    clock: Clock = time.perf_counter,
) -> tuple[list[TimedRow], SampleLengths]:
    """Measure all contenders on the samples in both orders, and the recipe's own model with other batch sizes, too.

    `shape` has "samples" for the axis of tokens. Each contender has a row for each order; a call is one batch. The
    ratios of rivals are ratios of the time that all samples take. Raises StepError where the shape does not suit the
    model.
    """
    size = _batch_size(shape, rows.specs)
    batches = {order: rows.batches(size, order) for order in ORDERS}
    compared = [Sweep(each, size, order, batches[order]) for order in ORDERS for each in contenders]
    sweeps = [*compared, *_other_sizes(contenders, size, rows)]
    last: list[_Measured] = []

    def measure(budget: Budget) -> list[TimedRow]:
        taken = dict(zip(sweeps, measure_sweeps(sweeps, budget, clock=clock), strict=True))
        last.append(_Measured(taken, rows.lengths))
        return [_row(shape, sweep, compared, last[-1]) for sweep in compared]

    timed = budgets.decided(measure, budget, limits, until=until, clock=clock)
    return timed, _summary(shape, rows, last[-1])


def measure_sweeps(sweeps: Sequence[Sweep], budget: Budget, *, clock: Clock = time.perf_counter) -> list[TimedCalls]:
    """Return the calls of each sweep, none of them after a pause.

    The order of the turns changes from round to round, as in `interleaving.measure`. A turn consists of whole sweeps:
    as many as fit into its time, and at least one. Where not even one sweep of each fits, there are fewer rounds, but
    at least 3.
    """
    calls = [[each.contender.prepare(batch) for batch in each.batches] for each in sweeps]
    usual = [_warm_up(each, own, budget.warm_up / len(sweeps), clock) for each, own in zip(sweeps, calls, strict=True)]
    rounds = min(budget.rounds, max(_LEAST_ROUNDS, int(budget.seconds / sum(usual))))
    turn = budget.seconds / rounds / len(sweeps)
    most = [budget.most_runs // rounds // len(own) for own in calls]
    repeats = [max(1, min(limit, int(turn / took))) for limit, took in zip(most, usual, strict=True)]
    timed = [TimedCalls([], [], []) for _ in sweeps]
    for index in interleaving.turns(rounds, len(sweeps)):
        with sweeps[index].contender.active():
            calls[index][0]()  # not timed: the caches still hold another model's weights
            sweep = partial(interleaving.times, calls[index] * repeats[index], clock)
            took, waited = interleaving.with_wait(sweep, clock)
        timed[index].hot.append(took)
        timed[index].waited.append(waited)
    return timed


def _warm_up(sweep: Sweep, calls: Sequence[Call], seconds: float, clock: Clock) -> float:
    """Call a model once with every batch, and again while `seconds` are not over; return the seconds of a sweep."""
    with sweep.contender.active():
        end = clock() + seconds
        took = sum(interleaving.times(calls, clock))
        while clock() < end:
            took = min(took, sum(interleaving.times(calls, clock)))
    return took


def _other_sizes(contenders: Sequence[Contender], own: int, rows: SampleRows) -> list[Sweep]:
    """Return what is measured of the recipe's own model beside the shape's own batch size.

    Batches of one row need no order.
    """
    return [
        Sweep(each, size, order, rows.batches(size, order))
        for each in contenders
        if each.ours
        for size in _SIZES
        if size != own and rows.takes(size)
        for order in (ORDERS if size > 1 else ("arrival",))
    ]


def _row(shape: Shape, sweep: Sweep, compared: Sequence[Sweep], measured: _Measured) -> TimedRow:
    """Return the row of one contender in one order, and the milliseconds of its calls by rounds."""
    contender, lengths = sweep.contender, measured.lengths
    ratios = {
        other.contender.runtime: measured.ratios(other, sweep)
        for other in compared
        if contender.ours and not other.contender.ours and other.order == sweep.order
    }
    arrival = next(other for other in compared if other.contender is contender)
    figures = SampleFigures(
        **measured.figures(sweep, arrival),
        texts=len(lengths),
        tokens=sum(lengths),
        tokens_per_s=measured.per_second(sum(lengths), sweep),
    )
    return interleaving.timed_row(contender, measured.timed[sweep], shape=shape, ratios=ratios, samples=figures)


def _summary(shape: Shape, rows: SampleRows, measured: _Measured) -> SampleLengths:
    lengths = rows.lengths
    buckets = sample_rows.buckets(lengths, longest=rows.tokenizer.longest)
    ours = [sweep for sweep in measured.timed if sweep.contender.ours]
    alone = next((sweep for sweep in ours if sweep.size == 1 and sweep.order == "arrival"), None)
    batchings = [Batching(batch=sweep.size, **measured.figures(sweep, alone)) for sweep in ours]
    return SampleLengths(
        shape=dict(shape),
        texts=len(lengths),
        of_texts=rows.of_texts,
        tokens=sum(lengths),
        longest=max(lengths),
        limit=rows.tokenizer.longest,
        batchings=tuple(sorted(batchings, key=lambda each: (each.batch, each.order))),
        buckets=buckets,
        padding_in_buckets=_padding(lengths, sample_rows.positions(lengths, buckets)),
        padding_in_one_bucket=_padding(lengths, sample_rows.positions(lengths, buckets[-1:])),
    )


def _padding(lengths: Sequence[int], positions: int) -> float:
    """Return the share of padded positions among all positions that the model computes."""
    return round(1 - sum(lengths) / positions if positions else 0.0, stats.RATIO_DIGITS)


def _batch_size(shape: Mapping[str, int | str], specs: Mapping[str, Input]) -> int:
    """Return the batch size of a shape whose other axis counts tokens. Raises StepError for any other shape."""
    batch, tokens = specs["input_ids"].shape
    named = axes.by_name(shape, axes.shapes(specs))
    rest = {axis: size for axis, size in named.items() if axis != batch and size != OF_SAMPLES}
    if named.get(str(tokens)) != OF_SAMPLES or (rest and isinstance(batch, str)):
        raise StepError(
            "a shape of samples does not suit the model",
            [f"{name}: {lists.extents(spec.shape)}" for name, spec in specs.items()],
            f"a shape of this model says {{{axes.as_key(str(batch))}: 8, {axes.as_key(str(tokens))}: {OF_SAMPLES}}}",
        )
    return batch if isinstance(batch, int) else int(named.get(batch, 1))
