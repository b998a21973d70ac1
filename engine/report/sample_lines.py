"""Sample lines: what the table says about the lengths of samples, the gain by sorting, and the proposal."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from engine.builder.summary import Summary
from engine.kit.bench.report import BenchReport, BenchRow, speed_up
from engine.kit.bench.sample_report import Batching, SampleFigures, SampleLengths
from engine.text import lists


def lines(summary: Summary, bench: BenchReport) -> Iterator[str]:
    """Yield the lines below the table's rows about each shape of samples."""
    for lengths in bench.samples:
        rows = [row for row in bench.rows if row.samples is not None and row.shape == lengths.shape]
        half = len(rows) // 2  # the rows in the order of arrival, then the same models sorted by length
        yield _about(lengths, [row.samples for row in rows if row.samples is not None])
        for arrival, by_length in zip(rows[:half], rows[half:], strict=True):
            yield f"  {arrival.title}: {_gain(arrival, by_length)}"
        yield f"  texts/s by batch size: {'; '.join(_sizes(lengths.batchings))}"
        fastest = lengths.fastest()
        if fastest is not None:
            order = "" if fastest.batch == 1 else ", sorted" if fastest.order == "sorted" else ", in arrival order"
            yield f"  fastest measured: batches of {fastest.batch}{order}"
        proposal = summary.proposal(lengths)
        if proposal:
            yield "  for these lengths, the recipe could say:"
            yield from (f"    {line}" for line in proposal.splitlines())


def _about(lengths: SampleLengths, figures: Sequence[SampleFigures]) -> str:
    paddings = {each.order: each.padding for each in figures}
    count = lists.counted(lengths.texts, "sample")
    chosen = count if lengths.texts == lengths.of_texts else f"{count} of {lengths.of_texts:,}"
    tokens = f"{lengths.tokens:,} tokens, the longest {lengths.longest}"
    order = f"padding {paddings['arrival']:.1%} in arrival order, {paddings['sorted']:.1%} sorted by length"
    return f"{chosen}: {tokens}; in batches of {_batch(lengths)}, {order}"


def _batch(lengths: SampleLengths) -> str:
    return " x ".join(str(size) for size in lengths.shape.values() if isinstance(size, int)) or "1"


def _gain(first: BenchRow, second: BenchRow) -> str:
    arrival, by_length = first.samples, second.samples
    if arrival is None or by_length is None or by_length.gain is None or by_length.gain_interval is None:
        return ""
    gain = speed_up(by_length.gain, by_length.gain_interval, busy=first.is_busy or second.is_busy)
    return f"{_throughput(arrival)} in arrival order, {_throughput(by_length)} sorted: {gain}"


def _throughput(figures: SampleFigures) -> str:
    return f"{figures.texts_per_s:,.1f} texts/s ({figures.tokens_per_s:,.0f} tokens/s)"


def _sizes(batchings: Sequence[Batching]) -> Iterator[str]:
    """Yield the texts per second of each measured batch size: "4: 310.0 in arrival order, 420.0 sorted"."""
    for size in dict.fromkeys(each.batch for each in batchings):
        speeds = {each.order: f"{each.texts_per_s:,.1f}" for each in batchings if each.batch == size}
        both = f"{speeds['arrival']} in arrival order, {speeds['sorted']} sorted" if len(speeds) > 1 else ""
        yield f"{size}: {both or next(iter(speeds.values()))}"
