"""What is measured of a model against the original: how far its outputs are off, and how often it chooses the same."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from engine.reporting import Number, TypedReport, significant

_DIGITS = 4


@dataclass(frozen=True)
class Worst:
    """A number over all cases: its mean, its worst, and the case that is the worst."""

    worst: float
    mean: float
    sample: str
    text: str
    """The beginning of the case's text, where it has one."""

    def line(self, number: Number) -> str:
        """Return both numbers and the worst case's name."""
        return f"{number.label} mean {number.text(self.mean)}, worst {number.text(self.worst)} ({self.sample})"


@dataclass(frozen=True)
class Agreement:
    """How often the built model chooses as the original does."""

    share: float
    differ: tuple[str, ...]
    """The cases in which it does not."""
    choices: int

    def line(self, number: Number) -> str:
        """Return the share."""
        return f"{number.label} {number.text(self.share)}"


@dataclass(frozen=True)
class MetricReport:
    """A metric over the samples that have a label, of the built model and of the original."""

    name: str
    value: float
    original: float
    samples: int

    def line(self, number: Number) -> str:
        """Return the built model's value under the metric's own name."""
        return f"{self.name} {number.text(self.value)}"


@dataclass(frozen=True, kw_only=True)
class AccuracyReport(TypedReport):
    """What `validate` and `validate-onnx` report. Where an answer is not finite, nothing else is measured."""

    cases: int
    kinds: Mapping[str, int]
    random: bool
    """Whether there were no samples, so that random tensors were drawn."""
    outside: tuple[str, ...] = ()
    """The cases of shapes that the model does not take."""
    nonfinite: tuple[str, ...] = ()
    """The cases in which the built model gives NaN or infinity where the original does not."""
    cosine: Worst | None = field(default=None, metadata=significant("cosine", digits=_DIGITS))
    """None where no output is a vector with a direction."""
    max_abs: Worst | None = field(default=None, metadata=significant("max_abs", digits=_DIGITS))
    relative: Worst | None = None
    """The largest error as a share of the output's largest value."""
    agreement: Agreement | None = field(default=None, metadata=significant("agreement", digits=_DIGITS))
    """None where the outputs choose nothing."""
    metric: MetricReport | None = field(default=None, metadata=significant("metric", digits=_DIGITS))
    """None where no sample has a label."""
    bytes: int | None = None
    """The size of what was measured, where that is what will be packaged."""
    emulated: str | None = None
    """The half precisions that a CPU emulated."""
