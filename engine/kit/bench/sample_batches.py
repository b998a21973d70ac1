"""Sample batches: measures a model and its rivals on a recipe's samples, cut into batches in two orders."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from engine.errors import StepError
from engine.kit.bench import budgets, confidence, mixed_lengths, stats, sweeps
from engine.kit.bench.budgets import Limits, TimedRow
from engine.kit.bench.interleaving import RAW_DIGITS, Budget, Clock, Contender
from engine.kit.bench.mixed_lengths import SampleOrder
from engine.kit.bench.report import BenchRow
from engine.kit.bench.sample_report import Batching, SampleFigures, SampleLengths
from engine.kit.bench.sample_rows import SampleRows
from engine.kit.bench.sweeps import Rounds, Sweep
from engine.recipe.fields import OF_SAMPLES
from engine.runtimes import axes
from engine.text import lists

if TYPE_CHECKING:
    from engine.kit.onnx.onnx_files import Input

Shape = Mapping[str, int | str]

_SIZES = (1, 4, 8)
"""The batch sizes that are measured besides the shape's own."""


@dataclass(frozen=True)
class _Kind:
    """What a sweep measures: a model on all samples in batches of one size, in one order."""

    contender: Contender
    size: int
    order: SampleOrder


@dataclass(frozen=True)
class _Measured:
    """The sweeps of a measurement, and the seconds of their calls."""

    kinds: Sequence[_Kind]
    taken: Sequence[Sweep]
    rounds: Sequence[Rounds]

    def seconds(self, kind: _Kind) -> list[float]:
        """Return the mean seconds of a whole sweep in each round."""
        place = self.kinds.index(kind)
        return self.taken[place].seconds(self.rounds[place])

    def ratios(self, slow: _Kind, fast: _Kind) -> list[float]:
        """Return for each round how many times longer one sweep takes than another."""
        return [theirs / mine for theirs, mine in zip(self.seconds(slow), self.seconds(fast), strict=True)]

    def padding(self, kind: _Kind, tokens: int) -> float:
        """Return the share of padded positions among the positions that a sweep computes."""
        batches = self.taken[self.kinds.index(kind)].batches
        positions = sum(batch["input_ids"].size for batch in batches)
        return round(mixed_lengths.padding(tokens, positions), stats.RATIO_DIGITS)


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
    compared = [_Kind(each, size, order) for order in SampleOrder for each in contenders]
    kinds = [*compared, *_other_sizes(contenders, size, rows)]
    batches = {key: rows.batches(*key) for key in dict.fromkeys((kind.size, kind.order) for kind in kinds)}
    taken = [Sweep(kind.contender, batches[kind.size, kind.order]) for kind in kinds]
    last: list[_Measured] = []

    def measure(budget: Budget) -> list[TimedRow]:
        last.append(_Measured(kinds, taken, sweeps.measure(taken, budget, clock=clock)))
        return [_row(shape, kind, compared, last[-1], rows.lengths) for kind in compared]

    timed = budgets.decided(measure, budget, limits, until=until, clock=clock)
    return timed, _summary(shape, rows, last[-1])


def _other_sizes(contenders: Sequence[Contender], own: int, rows: SampleRows) -> list[_Kind]:
    """Return what is measured of the recipe's own model beside the shape's own batch size.

    Batches of one row need no order.
    """
    return [
        _Kind(each, size, order)
        for each in contenders
        if each.ours
        for size in _SIZES
        if size != own and rows.takes(size)
        for order in (SampleOrder if size > 1 else [SampleOrder.ARRIVAL])
    ]


def _row(shape: Shape, kind: _Kind, compared: Sequence[_Kind], measured: _Measured, lengths: Sequence[int]) -> TimedRow:
    """Return the row of one contender in one order, and the milliseconds of its calls by rounds."""
    ratios = {
        other.contender.runtime: measured.ratios(other, kind)
        for other in compared
        if kind.contender.ours and not other.contender.ours and other.order is kind.order
    }
    seconds, tokens = measured.seconds(kind), sum(lengths)
    arrival = next(other for other in compared if other.contender is kind.contender)
    gains = None if arrival == kind else measured.ratios(arrival, kind)
    figures = SampleFigures(
        order=kind.order.value,
        texts=len(lengths),
        tokens=tokens,
        padding=measured.padding(kind, tokens),
        texts_per_s=_per_second(len(lengths), seconds),
        tokens_per_s=_per_second(tokens, seconds),
        gain=None if gains is None else round(stats.median(gains), stats.RATIO_DIGITS),
        gain_interval=None if gains is None else confidence.rounded_interval(gains),
    )
    rounds_ms = [[value * 1e3 for value in values] for values in measured.rounds[measured.kinds.index(kind)]]
    row = BenchRow.of_rounds(
        rounds_ms,
        shape=dict(shape),
        via=kind.contender.via,
        runtime=kind.contender.runtime,
        ours=kind.contender.ours,
        ratios=ratios,
        samples=figures,
    )
    return row, [[round(value, RAW_DIGITS) for value in values] for values in rounds_ms]


def _summary(shape: Shape, rows: SampleRows, measured: _Measured) -> SampleLengths:
    lengths, tokens = rows.lengths, sum(rows.lengths)
    buckets = mixed_lengths.buckets(lengths, longest=rows.tokenizer.longest)
    ours = [kind for kind in measured.kinds if kind.contender.ours]
    alone = next((kind for kind in ours if kind.size == 1 and kind.order is SampleOrder.ARRIVAL), None)
    batchings = [_batching(kind, alone, measured, lengths) for kind in ours]

    def padding(buckets: Sequence[int]) -> float:
        return round(mixed_lengths.padding(tokens, mixed_lengths.positions(lengths, buckets)), stats.RATIO_DIGITS)

    return SampleLengths(
        shape=dict(shape),
        texts=len(lengths),
        of_texts=rows.of_texts,
        tokens=tokens,
        longest=max(lengths),
        limit=rows.tokenizer.longest,
        batchings=tuple(sorted(batchings, key=lambda each: (each.batch, each.order))),
        buckets=buckets,
        padding_in_buckets=padding(buckets),
        padding_in_one_bucket=padding(buckets[-1:]),
    )


def _batching(kind: _Kind, alone: _Kind | None, measured: _Measured, lengths: Sequence[int]) -> Batching:
    """Return the figures of a batch size; `alone` is the measurement of one text at a time."""
    gains = None if alone is None or alone == kind else measured.ratios(alone, kind)
    return Batching(
        batch=kind.size,
        order=kind.order.value,
        padding=measured.padding(kind, sum(lengths)),
        texts_per_s=_per_second(len(lengths), measured.seconds(kind)),
        gain=None if gains is None else round(stats.median(gains), stats.RATIO_DIGITS),
        gain_interval=None if gains is None else confidence.rounded_interval(gains),
    )


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


def _per_second(count: int, seconds: Sequence[float]) -> float:
    return round(count / stats.median(seconds), 1)
