"""Bench report: a row of latencies for each model, shape and way of calling, and the machine that measured them."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Self

from engine.kit.bench import stats
from engine.machine.gpu_state import GpuReport
from engine.reporting import TypedReport, measured
from engine.text import lists


@dataclass(frozen=True, kw_only=True)
class BenchRow:
    """The latencies of one model at one shape, in process or through a server.

    Each field that `measured` gives a label is a column of the printed table.
    """

    mean_ms: float = field(metadata=measured("mean", unit="ms", digits=3))
    p50_ms: float = field(metadata=measured("p50", unit="ms", digits=3))
    p95_ms: float = field(metadata=measured("p95", unit="ms", digits=3))
    p99_ms: float = field(metadata=measured("p99", unit="ms", digits=3))
    runs: int
    noise: float
    """The noise of the row: the interquartile range of the rounds' medians, divided by the median of those medians."""
    shape: Mapping[str, int]
    via: str
    runtime: str
    ours: bool
    """Whether the recipe builds the model. A model that the recipe does not build is a rival."""
    ratio_to: Mapping[str, float]
    """For the recipe's own model: how many times longer each rival takes that is called in the same way (`via`)."""
    new_tokens: int | None = None
    """How many tokens one call generates; None where the model generates no text."""
    tokens_per_s: float | None = None
    """Generated tokens per second, of all rows of a batch together."""

    @classmethod
    def of_rounds(
        cls,
        rounds_ms: Sequence[Sequence[float]],
        *,
        shape: Mapping[str, int],
        via: str,
        runtime: str,
        ours: bool,
        ratio_to: Mapping[str, float],
    ) -> Self:
        """Return the row made from latencies in milliseconds, a list for each round."""
        every = [value for values in rounds_ms for value in values]
        return cls(
            mean_ms=round(math.fsum(every) / len(every), stats.MS_DIGITS),
            p50_ms=round(stats.median(every), stats.MS_DIGITS),
            p95_ms=round(stats.percentile(every, 0.95), stats.MS_DIGITS),
            p99_ms=round(stats.percentile(every, 0.99), stats.MS_DIGITS),
            runs=len(every),
            noise=round(stats.spread([stats.median(values) for values in rounds_ms]), stats.RATIO_DIGITS),
            shape=shape,
            via=via,
            runtime=runtime,
            ours=ours,
            ratio_to=ratio_to,
        )


@dataclass(frozen=True, kw_only=True)
class ServerReport:
    """The Triton server that served the models in a measurement.

    `asked` is the name of the model that got the requests.
    """

    kind: str
    version: str
    stand_in: bool
    asked: str


@dataclass(frozen=True, kw_only=True)
class BenchReport(TypedReport):
    """The rows of latencies from one run of bench, in which all models took turns."""

    threads: int
    cpu: str
    rows: tuple[BenchRow, ...]
    gpu: GpuReport | None = None
    """The GPU that ran the models, and its clocks during the measurement."""
    server: ServerReport | None = None

    @property
    def noise(self) -> float:
        """The largest noise among the rows of the report; 0 for a report without rows."""
        return max((row.noise for row in self.rows), default=0.0)

    @property
    def processor(self) -> str:
        """The name of the CPU and the number of threads that were used: "Xeon, 8 threads"."""
        return f"{self.cpu}, {lists.counted(self.threads, 'thread')}"

    def ours_beside(self, rival: BenchRow) -> BenchRow | None:
        """Return the row of the recipe's own model with the shape and the `via` of `rival`; None without such a row."""
        same = (row for row in self.rows if row.ours and row.shape == rival.shape and row.via == rival.via)
        return next(same, None)
