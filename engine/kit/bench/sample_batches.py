"""Sample batches: measures a model and its rivals on a recipe's samples, cut into batches in two orders."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from engine.errors import StepError
from engine.kit.bench import budgets, confidence, mixed_lengths, stats, sweeps
from engine.kit.bench.budgets import Limits, TimedRow
from engine.kit.bench.interleaving import Budget, Clock, Contender
from engine.kit.bench.mixed_lengths import Order
from engine.kit.bench.report import BenchRow
from engine.kit.bench.sample_report import Batching, SampleFigures, SampleLengths
from engine.kit.bench.sweeps import Rounds, Sweep
from engine.kit.inputs import samples, token_rows
from engine.kit.inputs import tokenizer as tokenizers
from engine.kit.inputs.token_rows import Row, RowLimits
from engine.recipe.fields import OF_SAMPLES
from engine.runtimes import axes
from engine.text import lists

if TYPE_CHECKING:
    import numpy as np

    from engine.kit.inputs.tokenizer import Tokenizer
    from engine.kit.onnx.onnx_files import Input
    from engine.recipe.schema import Profile

    Tensors = Mapping[str, np.ndarray]

MOST_TEXTS = 512
"""Of a larger file of samples, so many texts are measured; they are spread evenly over the file."""
_SIZES = (1, 4, 8)
"""The batch sizes that are measured besides the shape's own."""


@dataclass(frozen=True)
class SampleRows:
    """The samples as rows of tokens, and how rows become the batches that a model takes."""

    rows: Sequence[Row]
    of_texts: int
    tokenizer: Tokenizer
    specs: Mapping[str, Input]
    allowed: Sequence[RowLimits]
    """The limits of the model's profiles; empty for a model that takes a batch of any size."""

    @property
    def lengths(self) -> list[int]:
        """The number of tokens of each row."""
        return [row["input_ids"].shape[1] for row in self.rows]

    def batch(self, indices: Sequence[int]) -> dict[str, np.ndarray]:
        """Return rows as one batch, in which the last row is repeated where profiles need more rows.

        Raises StepError where no profile takes the batch.
        """
        longest = max(self.lengths[index] for index in indices)
        shape = mixed_lengths.padded(len(indices), longest, self.allowed)
        if shape is None:
            raise StepError(
                f"no profile takes a batch of {lists.counted(len(indices), 'sample')} with up to {longest} tokens",
                [f"profile {number}: {_in_words(limits)}" for number, limits in enumerate(self.allowed)],
                "widen a profile, or measure another batch size",
            )
        rows = [self.rows[index] for index in indices]
        rows += rows[-1:] * (shape[0] - len(rows))
        tensors = token_rows.batch(rows, pad=self.tokenizer.pad, side=self.tokenizer.side, length=shape[1])
        return token_rows.fit(tensors, self.specs)

    def takes(self, size: int) -> bool:
        """Whether the model takes batches of `size` rows of every length."""
        return mixed_lengths.padded(size, max(self.lengths), self.allowed) is not None

    def batches(self, size: int, order: Order) -> list[dict[str, np.ndarray]]:
        """Return all samples as batches of `size` rows in an order."""
        return [self.batch(indices) for indices in mixed_lengths.batches(self.lengths, size, order)]


def read(
    file: Path,
    checkpoint: Path,
    specs: Mapping[str, Input],
    *,
    longest: int | None = None,
    profiles: Sequence[Profile] = (),
) -> SampleRows:
    """Return the samples of a `.jsonl` file as rows, cut to `longest` tokens and to the model's own limit.

    Raises StepError where the file holds no texts, or the model takes no tokens or has no tokenizer.
    """
    samples.refuse_no_tokens(specs)
    own = RowLimits.of(specs, longest)
    tokenizer = tokenizers.load(checkpoint, longest=own.sequence[1])
    if tokenizer is None:
        raise samples.no_tokenizer()
    texts = samples.texts(file)
    rows = []
    for index in mixed_lengths.evenly(len(texts), MOST_TEXTS):
        row = tokenizer.row(texts[index].text, texts[index].pair)
        if row["input_ids"].size == 0:
            raise StepError(f"the tokenizer makes no token of {texts[index].name}", hint="leave it out of the samples")
        rows.append(row)
    allowed = [_limits(profile, specs) for profile in profiles]
    if not allowed and own.batch[1] is not None:
        allowed = [own]
    return SampleRows(rows, len(texts), tokenizer, specs, allowed)


def measured(
    shape: Mapping[str, int | str],
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
    kinds = [(each, size, order) for order in Order for each in contenders]
    further = [other for other in _SIZES if other != size and rows.takes(other)]
    kinds += [
        (each, other, order)
        for each in contenders
        if each.ours
        for other in further
        for order in (Order if other > 1 else [Order.ARRIVAL])  # a batch of one row needs no order
    ]
    batches = {(size, order): rows.batches(size, order) for _, size, order in kinds}
    taken = [Sweep(each, batches[size, order]) for each, size, order in kinds]
    lengths = rows.lengths
    paddings = {key: mixed_lengths.padding(sum(lengths), _positions(each)) for key, each in batches.items()}
    timed: list[Rounds] = []

    def measure(budget: Budget) -> list[TimedRow]:
        timed[:] = sweeps.measure(taken, budget, clock=clock)
        seconds = [each.seconds(rounds) for each, rounds in zip(taken, timed, strict=True)]
        count = 2 * len(contenders)
        return [
            _row(shape, kinds[place], place, timed[place], seconds, kinds[:count], lengths, paddings)
            for place in range(count)
        ]

    result = budgets.decided(measure, budget, limits, until=until, clock=clock)
    seconds = [each.seconds(rounds) for each, rounds in zip(taken, timed, strict=True)]
    half = len(contenders)
    gains = {
        str(each): [slow / fast for slow, fast in zip(seconds[place], seconds[half + place], strict=True)]
        for place, each in enumerate(contenders)
    }
    batchings = tuple(
        Batching(
            batch=batch,
            order=order.value,
            padding=round(paddings[batch, order], stats.RATIO_DIGITS),
            texts_per_s=_per_second(len(lengths), seconds[place]),
        )
        for place, (each, batch, order) in enumerate(kinds)
        if each.ours
    )
    return result, _summary(shape, rows, gains, batchings)


def _summary(
    shape: Mapping[str, int | str],
    rows: SampleRows,
    gains: Mapping[str, Sequence[float]],
    batchings: tuple[Batching, ...],
) -> SampleLengths:
    lengths = rows.lengths
    buckets = mixed_lengths.buckets(lengths, longest=rows.tokenizer.longest)

    def padding(buckets: Sequence[int]) -> float:
        positions = mixed_lengths.positions(lengths, buckets)
        return round(mixed_lengths.padding(sum(lengths), positions), stats.RATIO_DIGITS)

    return SampleLengths(
        shape=dict(shape),
        texts=len(lengths),
        of_texts=rows.of_texts,
        tokens=sum(lengths),
        longest=max(lengths),
        limit=rows.tokenizer.longest,
        gains={name: round(stats.median(values), stats.RATIO_DIGITS) for name, values in gains.items()},
        gain_intervals={name: confidence.rounded_interval(values) for name, values in gains.items()},
        batchings=tuple(sorted(batchings, key=lambda each: (each.batch, each.order))),
        buckets=buckets,
        padding_in_buckets=padding(buckets),
        padding_in_one_bucket=padding(buckets[-1:]),
    )


def _row(
    shape: Mapping[str, int | str],
    kind: tuple[Contender, int, Order],
    place: int,
    rounds: Rounds,
    seconds: Sequence[Sequence[float]],
    kinds: Sequence[tuple[Contender, int, Order]],
    lengths: Sequence[int],
    paddings: Mapping[tuple[int, Order], float],
) -> TimedRow:
    """Return the row of one contender in one order, and its milliseconds; `kinds` are the rows of all contenders."""
    contender, size, order = kind
    ratios = {
        other.runtime: [theirs / mine for theirs, mine in zip(seconds[index], seconds[place], strict=True)]
        for index, (other, _, its_order) in enumerate(kinds)
        if contender.ours and not other.ours and its_order is order
    }
    rounds_ms = [[value * 1e3 for value in values] for values in rounds]
    figures = SampleFigures(
        order=order.value,
        texts=len(lengths),
        tokens=sum(lengths),
        padding=round(paddings[size, order], stats.RATIO_DIGITS),
        texts_per_s=_per_second(len(lengths), seconds[place]),
        tokens_per_s=_per_second(sum(lengths), seconds[place]),
    )
    row = BenchRow.of_rounds(
        rounds_ms,
        shape=dict(shape),
        via=contender.via,
        runtime=contender.runtime,
        ours=contender.ours,
        ratios=ratios,
        samples=figures,
    )
    return row, [[round(value, 3) for value in values] for values in rounds_ms]


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


def _limits(profile: Profile, specs: Mapping[str, Input]) -> RowLimits:
    named = axes.by_name(profile, axes.shapes(specs))

    def limits(axis: int | str) -> tuple[int, int | None]:
        if isinstance(axis, int):
            return axis, axis
        return (named[axis].min, named[axis].max) if axis in named else (1, None)

    batch, tokens = specs["input_ids"].shape
    return RowLimits(limits(batch), limits(tokens))


def _positions(batches: Sequence[Tensors]) -> int:
    return sum(batch["input_ids"].size for batch in batches)


def _per_second(count: int, seconds: Sequence[float]) -> float:
    return round(count / stats.median(seconds), 1)


def _in_words(limits: RowLimits) -> str:
    def between(ends: tuple[int, int | None]) -> str:
        return f"{ends[0]} to {ends[1] or 'any'}"

    return f"batch {between(limits.batch)}, tokens {between(limits.sequence)}"
