"""What bench reports: a row of latencies for each model, shape and way, and the machine that they were measured on."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from engine.kit.bench.stats import Latencies
from engine.machine.gpu_state import GpuReport
from engine.reporting import TypedReport

IN_PROCESS = "in-process"


@dataclass(frozen=True, kw_only=True)
class BenchRow(Latencies):
    """The latencies of one model at one shape, on one way to it."""

    shape: Mapping[str, int]
    via: str
    runtime: str
    ours: bool
    ratio_to: Mapping[str, float]
    """Of a row of ours: how many times longer each rival takes that goes the same way, as the median over rounds."""
    new_tokens: int | None = None
    """How many tokens a call generates, where the model generates text."""
    tokens_per_s: float | None = None
    """Those of all rows of a batch together."""


@dataclass(frozen=True, kw_only=True)
class ServerReport:
    """The server that answered, and which of its models was asked."""

    kind: str
    version: str
    stand_in: bool
    asked: str


@dataclass(frozen=True, kw_only=True)
class BenchReport(TypedReport):
    """All rows of one run, interleaved."""

    threads: int
    cpu: str
    rows: tuple[BenchRow, ...]
    gpu: GpuReport | None = None
    """The GPU that all of it ran on, and what its clocks did."""
    server: ServerReport | None = None

    @property
    def noise(self) -> float:
        """The noise of the row that has the most."""
        return max((row.noise for row in self.rows), default=0.0)

    def ours_beside(self, rival: BenchRow) -> BenchRow | None:
        """Return our row at a rival's shape, on the same way."""
        same = (row for row in self.rows if row.ours and row.shape == rival.shape and row.via == rival.via)
        return next(same, None)
