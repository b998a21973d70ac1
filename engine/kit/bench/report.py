"""Bench report: a row of latencies for each model, shape and way of calling, and the machine that measured them."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import Enum
from typing import Any, ClassVar, Self

from engine.kit.bench import stats
from engine.kit.bench.sample_report import SampleFigures, SampleLengths
from engine.kit.bench.stats import Interval
from engine.machine.gpu_state import GpuReport
from engine.reporting import TypedReport, measured
from engine.runtimes.recipes import IN_PROCESS
from engine.runtimes.runner import CapturedGraph, DeviceTimes
from engine.text import lists

NO_DIFFERENCE, NOT_COMPARABLE = "no difference", "not comparable"
"""The texts in place of a speed-up: the measurement cannot tell it from 1, or the machine was busy meanwhile."""
_NOISY = 0.1
"""The share of latencies above which the machine was busy: see `BenchRow.noise` and `BenchRow.waited`."""


class BudgetVerdict(Enum):
    """Whether a latency keeps its budget."""

    KEPT = "kept"
    MISSED = "missed"
    UNDECIDED = "undecided"
    """The confidence interval of the latency covers the budget."""


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
    noise: float | None
    """The noise of the row: half the width of the 95 % confidence interval of `p50_ms`, divided by `p50_ms`.

    None for a row of version 1, whose noise was another statistic.
    """
    shape: Mapping[str, int | str]
    """The size of each axis; "samples" for the axis whose sizes are the lengths of samples."""
    via: str
    runtime: str
    ours: bool
    """Whether this is the recipe's own model, run as it is by default. Any other row is called a rival."""
    ratio_to: Mapping[str, float]
    """For the recipe's own model: how many times longer each rival takes that is called in the same way (`via`)."""
    intervals: Mapping[str, Interval] = field(default_factory=dict)
    """The 95 % confidence interval of each latency, by the name of its field."""
    ratio_intervals: Mapping[str, Interval] = field(default_factory=dict)
    """The 95 % confidence interval of each ratio in `ratio_to`."""
    new_tokens: int | None = None
    """How many tokens one call generates; None where the model generates no text."""
    tokens_per_s: float | None = None
    """Generated tokens per second, of all rows of a batch together."""
    samples: SampleFigures | None = None
    """The figures of a row whose calls are the batches of samples, one call for each batch; None for any other row."""
    device: DeviceTimes | None = None
    """The times of one call on the GPU by CUDA events, measured behind the turns; None where the runtime cannot."""
    other_way: bool = False
    """Whether this is the recipe's own model, run in the other way than `ours`: with a CUDA graph, or without."""
    graph: CapturedGraph | None = None
    """The CUDA graph that the calls replayed; None for calls without one."""
    paused_ms: float | None = None
    """The median of calls after a pause; None where it was not measured, or where a call fills its turn.

    All other latencies are of calls in a loop, which find threads awake and the model in the caches.
    """
    waited: float = 0.0
    """How long threads of this process waited for a CPU in a round, as a share of its time: the median of rounds."""

    @classmethod
    def of_rounds(
        cls,
        rounds_ms: Sequence[Sequence[float]],
        *,
        ratios: Mapping[str, Sequence[float]],
        paused_ms: Sequence[float] = (),
        **about: Any,
    ) -> Self:
        """Return the row made from latencies in milliseconds, a list for each round.

        `ratios` has for each rival a ratio for each round, `paused_ms` a latency after a pause for each round. `about`
        are the fields of the row that are no statistics.
        """
        every = [value for values in rounds_ms for value in values]
        intervals = stats.intervals(rounds_ms)
        if paused_ms:
            intervals["paused_ms"] = stats.intervals([[value] for value in paused_ms])["p50_ms"]
            about["paused_ms"] = round(stats.median(paused_ms), stats.MS_DIGITS)
        middle = stats.median(every)
        low, high = intervals["p50_ms"]
        return cls(
            mean_ms=round(math.fsum(every) / len(every), stats.MS_DIGITS),
            p50_ms=round(middle, stats.MS_DIGITS),
            p95_ms=round(stats.percentile(every, 0.95), stats.MS_DIGITS),
            p99_ms=round(stats.percentile(every, 0.99), stats.MS_DIGITS),
            runs=len(every),
            noise=round((high - low) / 2 / middle, stats.RATIO_DIGITS) if middle else 0.0,
            ratio_to={name: round(stats.median(values), stats.RATIO_DIGITS) for name, values in ratios.items()},
            intervals={name: stats.rounded(each, stats.MS_DIGITS) for name, each in intervals.items()},
            ratio_intervals={name: stats.rounded_interval(values) for name, values in ratios.items()},
            **about,
        )

    @property
    def rows_per_s(self) -> float | None:
        """Rows of a batch per second, of calls in a loop; None where the shape names no batch."""
        batch = self.shape.get("batch")
        return 1e3 * batch / self.p50_ms if isinstance(batch, int) and self.p50_ms else None

    @property
    def is_busy(self) -> bool:
        """Whether the machine was busy while the row was measured, so that its numbers are not reliable."""
        return max(self.noise or 0.0, self.waited) > _NOISY

    @property
    def title(self) -> str:
        """The name of the model for people: a rival may have the runtime and the precision of the built model."""
        return title_of(self.runtime, ours=self.ours)

    @property
    def judged(self) -> bool:
        """Whether budgets hold for the row: of the recipe's own model, and of samples in the order of arrival.

        Requests reach a server in the order of their arrival.
        """
        return self.ours and (self.samples is None or self.samples.order == "arrival")

    def took(self, name: str) -> float:
        """Return the latency called `name`, for example `p95_ms`, in milliseconds."""
        return float(getattr(self, name))

    def interval(self, name: str) -> Interval:
        """Return the confidence interval of a latency; for a row without intervals, from the latency to itself."""
        return self.intervals.get(name, (self.took(name), self.took(name)))

    def verdict(self, name: str, limit: float) -> BudgetVerdict:
        """Return whether a latency keeps its budget of `limit` milliseconds."""
        low, high = self.interval(name)
        if high <= limit:
            return BudgetVerdict.KEPT
        return BudgetVerdict.MISSED if low > limit else BudgetVerdict.UNDECIDED

    def speed_up(self, rival: BenchRow) -> str:
        """Return how many times longer a rival takes, as text: "3.25 x"; "" for a rival that was not measured beside.

        For a row without intervals, the noise takes the place of the interval.
        """
        ratio = self.ratio_to.get(rival.runtime)
        if ratio is None:
            return ""
        noise = self.noise or 0.0
        interval = self.ratio_intervals.get(rival.runtime, (ratio - noise, ratio + noise))
        return speed_up(ratio, interval, busy=self.is_busy or rival.is_busy)

    def generating(self, new_tokens: int) -> Self:
        """Return the row of a model that generates so many tokens in a call, with its tokens per second."""
        tokens = int(self.shape.get("batch", 1)) * new_tokens
        return replace(self, new_tokens=new_tokens, tokens_per_s=round(tokens / self.p50_ms * 1e3, 1))

    def about(self) -> dict[str, object]:
        """Return what `latencies.json` says about the latencies of the row."""
        order = {} if self.samples is None else {"order": self.samples.order}
        return {"shape": self.shape, **order, "via": self.via, "runtime": self.runtime, "ours": self.ours}

    def line(self, beside: Sequence[BenchRow]) -> str:
        """Return a line of the log: the latencies, and the speed-ups over the rivals in the rows `beside`."""
        ratios = "".join(f", {other.runtime}: {text}" for other in beside if (text := self.speed_up(other)))
        tokens = "" if self.tokens_per_s is None else f", {self.tokens_per_s:g} tokens/s"
        if self.samples is not None:
            tokens = f", {self.samples.texts_per_s:g} texts/s in {self.samples.order} order"
        took = f"p50 {self.p50_ms:.3f} ms, p99 {self.p99_ms:.3f} ms{tokens} in {self.runs} runs"
        return f"{self.runtime} {self.via}: {took}{ratios}"


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
class ModelStart(TypedReport):
    """What the start of a model costs, as measured in a process of its own."""

    runtime: str
    ours: bool = False
    load_s: float | None = None
    """The seconds in which the model was loaded, without the imports of its runtime."""
    first_ms: float | None = None
    """The milliseconds of the first call."""
    peak_mib: float | None = None
    """The peak of the resident memory with a call of each shape, above that before loading, in MiB."""
    reason: str = ""
    """Why nothing was measured; empty for a measurement."""

    def __str__(self) -> str:
        if self.load_s is None or self.first_ms is None or self.peak_mib is None:
            return f"start not measured: {self.reason}"
        return f"load {self.load_s:.2f} s, first call {self.first_ms:.1f} ms, peak memory {self.peak_mib:.0f} MiB"


@dataclass(frozen=True, kw_only=True)
class BenchReport(TypedReport):
    """The rows of latencies from one run of bench, in which all models took turns."""

    version: ClassVar[int] = 2

    threads: int
    cpu: str
    rows: tuple[BenchRow, ...]
    gpu: GpuReport | None = None
    """The GPU that ran the models, and its clocks during the measurement."""
    server: ServerReport | None = None
    samples: tuple[SampleLengths, ...] = ()
    """For each shape of samples, the lengths of the samples and what follows from them."""
    unmeasured: tuple[Unmeasured, ...] = ()
    """The rivals that could not run on this machine, and the CUDA graphs that could not be captured."""
    starts: tuple[ModelStart, ...] = ()
    """The start of each model that runs in process; empty in a report of an earlier version of this program."""

    @classmethod
    def migrated(cls, raw: Mapping[str, object], version: int) -> Mapping[str, object] | None:
        """Return a report of version 1 without its noise, which was another statistic: the spread of rounds."""
        rows = raw.get("rows")
        if version != 1 or not isinstance(rows, Sequence):
            return super().migrated(raw, version)
        return {**raw, "rows": [{**row, "noise": None} for row in rows]}

    @property
    def noise(self) -> float | None:
        """The largest noise among the rows of the report, which errors and tables show; None if it is not known."""
        return max((row.noise for row in self.rows if row.noise is not None), default=None)

    @property
    def warnings(self) -> Sequence[str]:
        """That the machine was busy, and that a stand-in was measured in place of Triton's own backend."""
        busy = f"the machine was busy ({self.noise_in_words}), so these numbers are not reliable"
        stand_in = "via triton: a stand-in in Python for Triton's own backend, which comes with its containers alone"
        return (
            *([f"{busy}; --force bench measures again"] if any(row.is_busy for row in self.rows) else []),
            *([stand_in] if self.server is not None and self.server.stand_in else []),
        )

    @property
    def noise_in_words(self) -> str:
        """The noise as text for errors and tables."""
        waited = max((row.waited for row in self.rows), default=0.0)
        noise = "noise not known" if self.noise is None else f"noise up to {self.noise:.1%}"
        return f"{noise}, {waited:.0%} of the time waiting for a CPU" if waited > _NOISY else noise

    @property
    def device(self) -> str:
        """The device that latencies were measured on: the name of the GPU, or of the CPU: "Xeon, 8 threads"."""
        return f"{self.cpu}, {lists.counted(self.threads, 'thread')}" if self.gpu is None else self.gpu.name

    @property
    def device_and_clocks(self) -> str:
        """The device, and for a GPU its clocks during the measurement: "T4 at 1590 MHz"."""
        return self.device if self.gpu is None else f"{self.device}{self.gpu.clocks_in_words}"

    def ours_beside(self, rival: BenchRow) -> BenchRow | None:
        """Return the row of the recipe's own model with the shape and the `via` of `rival`; None without such a row."""
        return next((row for row in self.rows if row.ours and _compared_by(row) == _compared_by(rival)), None)

    def speed_ups(self, ours: BenchRow) -> dict[str, str]:
        """Return the speed-up of the recipe's own model over each rival beside it, as text, by the rival's name."""
        rivals = (row for row in self.rows if not row.ours and _compared_by(row) == _compared_by(ours))
        return {rival.runtime: ours.speed_up(rival) for rival in rivals if rival.runtime in ours.ratio_to}


def title_of(runtime: str, *, ours: bool) -> str:
    """Return the name of a model in a measurement, which no other model in it has: "onnxruntime-int8 (ours)"."""
    return f"{runtime} (ours)" if ours else runtime


def case_in_words(row: BenchRow) -> str:
    """Return the shape of a row and how the model is called, as text: "batch 1 x sequence 16 via triton-grpc"."""
    order = "" if row.samples is None else f" in {row.samples.order} order"
    graph = "" if row.graph is None else " in a CUDA graph"
    return in_words(row.shape) + order + graph + ("" if row.via == IN_PROCESS else f" via {row.via}")


def speed_up(ratio: float, interval: Interval, *, busy: bool) -> str:
    """Return a ratio as text: "3.25 x", or "no difference" if its confidence interval covers 1.

    The text is "not comparable" if the machine was `busy` while one of the two was measured.
    """
    if busy:
        return NOT_COMPARABLE
    low, high = interval
    return NO_DIFFERENCE if low <= 1 <= high else f"{ratio:.2f} x"


def in_words(axes: Mapping[str, int | str]) -> str:
    """Return a shape as text: "batch 1 x sequence 16"."""
    return " x ".join(f"{axis} {extent}" for axis, extent in axes.items()) or "the model's own shape"


def _compared_by(row: BenchRow) -> tuple[Mapping[str, int | str], str, str | None]:
    """Return what the rows that are compared with each other have in common."""
    return row.shape, row.via, None if row.samples is None else row.samples.order


@dataclass(frozen=True, kw_only=True)
class Unmeasured:
    """A rival that could not run on this machine, or the built model in a CUDA graph, and the reason."""

    runtime: str
    reason: str
    shape: Mapping[str, int | str] = field(default_factory=dict)
    """The shape at which the rival failed; empty for a rival that could not be loaded."""

    def __str__(self) -> str:
        return f"{self.runtime} was not measured: {self.reason}"
