"""What quantize reports: a form for each way, and one for models of several graphs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Self, cast

from engine.reporting import TypedReport

Sizes = tuple[int, int]
"""Bytes of the model before and after."""


@dataclass(frozen=True)
class Inputs:
    """What was looked at: how many inputs, and of which kinds."""

    inputs: int
    kinds: tuple[str, ...]


@dataclass(frozen=True)
class Spread:
    """A cosine over all samples: the worst and the mean."""

    worst: float
    mean: float

    def rounded(self) -> Spread:
        """Return both to six digits, as reports show cosines."""
        return Spread(round(self.worst, 6), round(self.mean, 6))


@dataclass(frozen=True, kw_only=True)
class QuantizeReport(TypedReport):
    """What became of a model; which of the forms below it is, its fields say."""

    bytes: Sizes | None = None
    looked_at: Inputs | None = None
    unquantized: str | None = None
    """Why nothing was lowered, where nothing was."""

    @classmethod
    def from_json(cls, raw: object, version: int | None = None) -> Self:
        """Return the report in its own form. Raises ValueError where it has none of them."""
        if cls is not QuantizeReport or not isinstance(raw, Mapping):
            return super().from_json(raw, version)
        kind: type[QuantizeReport] = DynamicReport
        if "precision" in raw:
            kind = HalfReport if raw["precision"] in HALVES else QdqReport
        elif "graphs" in raw:
            kind = GraphsReport
        return cast("Self", kind.from_json(raw, version))


HALVES = ("fp16", "bf16")


@dataclass(frozen=True)
class ActivationScaling:
    """How many activations were scaled before rounding: by smoothing their channels, and with a scale per token."""

    smoothed: int
    by_row: int


@dataclass(frozen=True, kw_only=True)
class DynamicReport(QuantizeReport):
    """Dynamic int8 for a CPU; and any model that was handed on as it came."""

    quantized: Mapping[str, int]
    """Operators that were quantized."""
    left: tuple[str, ...]
    """Operators whose weights stay as they are, such as "2 Conv"."""
    evened: ActivationScaling | None = None


@dataclass(frozen=True, kw_only=True)
class GraphsReport(QuantizeReport):
    """Dynamic int8 of a model of several graphs."""

    graphs: Mapping[str, DynamicReport]


@dataclass(frozen=True, kw_only=True)
class Kept:
    """What stayed in float32 for one reason: operators with counts, and those of large values by name."""

    operators: Mapping[str, int]
    reason: str
    largest: float | str | None = None
    nodes: Mapping[str, float | str] = field(default_factory=dict)
    """How large a tensor of each becomes; "infinite" is a word, since JSON has no such number."""


@dataclass(frozen=True)
class HalfTry:
    """One try: up to which size tensors are in half precision, how many nodes are not, and what comes of it."""

    limit: float
    fp32: int
    cosine: float


@dataclass(frozen=True, kw_only=True)
class HalfReport(QuantizeReport):
    """fp16 or bf16: what stayed in float32, why, and at what cosine against float32."""

    precision: str
    kept: tuple[Kept, ...]
    cosine: Spread
    share: float | None
    """Of the multiplications of all matrix products; None where the model has none."""
    saturated: tuple[str, ...]
    scaled: tuple[str, ...]
    path: tuple[HalfTry, ...]
    samples: int
    casts: int


@dataclass(frozen=True)
class Left:
    """A MatMul that was not quantized; its error is 1 - the worst cosine with its group quantized alone."""

    name: str
    reason: str
    error: float | None


@dataclass(frozen=True)
class Quantized:
    """What is between Q/DQ pairs; `share` is of the multiplications of all MatMuls for a row of 128 tokens."""

    share: float
    matmuls: tuple[str, ...]
    left: tuple[Left, ...]
    convolutions: int


@dataclass(frozen=True)
class QdqTry:
    """One try: the share that was quantized, and the cosines that come of it."""

    share: float
    worst: float
    mean: float


@dataclass(frozen=True, kw_only=True)
class QdqReport(QuantizeReport):
    """int8, fp8 or int4 between Q/DQ pairs, the rest in fp16.

    Cosines are of whole outputs, on samples that nothing was calibrated on (unless there are fewer than 8).
    """

    precision: str
    int8: Quantized | None = None
    fp8: Quantized | None = None
    int4: Quantized | None = None
    cosine: Spread | None = None
    path: tuple[QdqTry, ...] | None = None
    smoothed: int | None = None
    samples: int | None = None
    held_out: int | None = None
    rest: HalfReport | None = None

    @property
    def quantized(self) -> Quantized | None:
        """What was quantized, in whichever precision."""
        return self.int8 or self.fp8 or self.int4
