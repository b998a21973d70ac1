"""Reports of quantize: a class for each way to lower the precision, and one for models of several graphs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Self, cast

from engine.reporting import TypedReport
from engine.text import lists

Sizes = tuple[int, int]
"""The size of the model in bytes, before and after quantization."""


_DYNAMIC: Mapping[str, str] = {
    **dict.fromkeys(("Conv", "ConvTranspose"), "dynamic int8 makes convolutions slower and less exact"),
    **dict.fromkeys(("Einsum", "GRU", "RNN"), "this kind of operator has no form in dynamic int8"),
}
"""Why operators of a kind stay in floating point in dynamic int8; of any other kind, see `_UNFIT`."""
_UNFIT = "without float32 weights in a stored matrix, or with inputs that the quantized form of the operator lacks"
_COMPUTED = "products of two computed tensors have no weights to quantize"
_NAMED = 3
"""The largest number of layers that a reason names."""


@dataclass(frozen=True)
class Inputs:
    """The inputs that were run for calibration: their number and their kinds."""

    inputs: int
    kinds: tuple[str, ...]


@dataclass(frozen=True)
class Spread:
    """The worst and the mean cosine between the outputs of two models, over all samples."""

    worst: float
    mean: float

    def rounded(self) -> Spread:
        """Return the worst and the mean cosine, rounded to the six digits that reports show."""
        return Spread(round(self.worst, 6), round(self.mean, 6))


@dataclass(frozen=True, kw_only=True)
class QuantizeReport(TypedReport):
    """The fields that all reports of the step `quantize` have.

    The fields of a report in JSON decide which subclass the report is read as.
    """

    bytes: Sizes | None = None
    looked_at: Inputs | None = None
    unquantized: str | None = None
    """The reason why the model was left unchanged; None where its precision was lowered."""

    def reasons(self) -> list[str]:
        """Return the reason why the model was left unchanged, else the reasons why its operators were."""
        return [*self._reasons()] if self.unquantized is None else [f"not quantized: {self.unquantized}"]

    def _reasons(self) -> Iterator[str]:
        return iter(())

    @classmethod
    def from_json(cls, raw: object, version: int | None = None) -> Self:
        """Return the report as an instance of the subclass that its fields belong to.

        Raises ValueError where no subclass has the fields of the JSON.
        """
        if cls is not QuantizeReport or not isinstance(raw, Mapping):
            return super().from_json(raw, version)
        kind: type[QuantizeReport] = DynamicReport
        if "precision" in raw:
            kind = HalfReport if raw["precision"] in HALVES else QdqReport
        elif "of" in raw:
            kind = StaticReport
        elif "graphs" in raw:
            kind = GraphsReport
        elif "weights" in raw:
            kind = WeightOnlyReport
        return cast("Self", kind.from_json(raw, version))


HALVES = ("fp16", "bf16")


@dataclass(frozen=True)
class ActivationScaling:
    """How many activations were smoothed, and how many have a scale per row, or a range that is fixed ahead of time."""

    smoothed: int
    by_row: int
    fixed: int = 0


@dataclass(frozen=True)
class Left:
    """A layer that was not quantized.

    `error` is 1 minus the worst cosine of the model when only the layer's group is quantized.
    """

    name: str
    reason: str
    error: float | None


@dataclass(frozen=True, kw_only=True)
class DynamicReport(QuantizeReport):
    """The report of dynamic int8 for a CPU, and of any model that was left unchanged."""

    quantized: Mapping[str, int]
    """The number of quantized operators by name."""
    left: tuple[str, ...]
    """The operators whose weights stay in floating point, such as "2 Conv"."""
    kept: tuple[Left, ...] = ()
    """The layers that stay in fp32 because the recipe names them."""
    evened: ActivationScaling | None = None

    def _reasons(self) -> Iterator[str]:
        yield from _named(self.kept)
        left = [each for each in self.left if not each.endswith(" Gather")]  # which multiplies nothing
        yield from (f"{each} in floating point: {_DYNAMIC.get(each.partition(' ')[2], _UNFIT)}" for each in left)
        if not left:
            yield f"the rest in floating point: {_COMPUTED}"


@dataclass(frozen=True, kw_only=True)
class WeightOnlyReport(QuantizeReport):
    """The report of weight-only quantization for a CPU."""

    weights: str
    """The number format of the stored weights: "int4" or "int8"."""
    quantized: Mapping[str, int]
    """The number of operators that read such weights, by the name of the operator before quantization."""
    left: tuple[str, ...]
    """The operators whose weights stay in floating point, such as "2 Conv"."""
    kept: tuple[Left, ...] = ()
    """The layers that stay in fp32 because the recipe names them."""

    def _reasons(self) -> Iterator[str]:
        yield from _named(self.kept)
        yield from (
            f"{each} in floating point: no MatMul with a stored matrix of 8 outputs or more" for each in self.left
        )


@dataclass(frozen=True, kw_only=True)
class Kept:
    """The operators that stayed in float32 for one reason, with counts. Nodes with large values are listed by name."""

    operators: Mapping[str, int]
    reason: str
    largest: float | str | None = None
    nodes: Mapping[str, float | str] = field(default_factory=dict)
    """The largest absolute value among the inputs and outputs of each listed node.

    The word "infinite" stands for infinity, which JSON has no number for.
    """


@dataclass(frozen=True)
class HalfTry:
    """One try of the search for nodes in fp16: the limit on values, the number of fp32 nodes, the worst cosine."""

    limit: float
    fp32: int
    cosine: float


@dataclass(frozen=True)
class NodeCounts:
    """The nodes of a graph: all, the Casts among them, and those that compute on a GPU.

    The nodes are counted in the graph, not on a GPU: a node may launch several kernels, and a compiler may fuse nodes.
    """

    all: int
    casts: int
    computing: int


@dataclass(frozen=True, kw_only=True)
class HalfReport(QuantizeReport):
    """The report of fp16 or bf16: the operators left in float32, with reasons, and the cosine against float32."""

    precision: str
    kept: tuple[Kept, ...]
    cosine: Spread
    share: float | None
    """The share of all matrix products' multiplications that run in half precision, from 0 to 1; None without products.
    """
    saturated: tuple[str, ...]
    scaled: tuple[str, ...]
    path: tuple[HalfTry, ...]
    samples: int
    casts: int
    """The number of Casts that the conversion to half precision inserted."""
    graph: NodeCounts | None = None
    """The nodes of the converted graph; None in reports of earlier versions."""

    def _reasons(self) -> Iterator[str]:
        yield from (f"{lists.counts(each.operators)} in fp32: {each.reason}" for each in self.kept)


@dataclass(frozen=True)
class Quantized:
    """The quantized layers: MatMuls and, for int8, convolutions.

    `share` is the quantized layers' share of the multiplications of all MatMuls, for a row of 128 tokens, and for int8
    of all convolutions, too. `matmuls` names the quantized layers; `convolutions` counts those that were not looked at.
    """

    share: float
    matmuls: tuple[str, ...]
    left: tuple[Left, ...]
    convolutions: int


@dataclass(frozen=True)
class QdqTry:
    """One try of the search for layers to quantize: the quantized share, the worst and the mean cosine."""

    share: float
    worst: float
    mean: float


@dataclass(frozen=True, kw_only=True)
class StaticReport(QuantizeReport):
    """The report of static int8 for a CPU: a convolutional graph.

    The cosines compare whole outputs. They are measured on samples that were not used for calibration, unless there are
    fewer than 8 samples.
    """

    quantized: Mapping[str, int]
    """The number of quantized operators by name."""
    of: Mapping[str, int]
    """The number of all operators of these names, quantized or not."""
    share: float
    """The quantized operators' share of the multiplications of all matrix operators, for one row."""
    ranges: str
    """The rule by which the range of each tensor was chosen."""
    left: tuple[Left, ...]
    cosine: Spread
    path: tuple[QdqTry, ...]
    samples: int
    held_out: int

    def _reasons(self) -> Iterator[str]:
        yield from _named(self.left)


@dataclass(frozen=True, kw_only=True)
class GraphsReport(QuantizeReport):
    """The report of a quantization for a CPU, for a model of several graphs: a report for each graph."""

    graphs: Mapping[str, WeightOnlyReport | DynamicReport | StaticReport]

    def _reasons(self) -> Iterator[str]:
        yield from (f"{name}: {reason}" for name, report in self.graphs.items() for reason in report.reasons())


@dataclass(frozen=True, kw_only=True)
class QdqReport(QuantizeReport):
    """The report of int8, fp8 or int4 between Q/DQ pairs, with the rest of the model in fp16.

    The cosines in the report compare whole outputs. The cosines are measured on samples that were not used for
    calibration, unless there are fewer than 8 samples.
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
        """The quantized MatMuls, from the one field among `int8`, `fp8` and `int4` that is set."""
        return self.int8 or self.fp8 or self.int4

    def _reasons(self) -> Iterator[str]:
        quantized = self.quantized
        yield from () if quantized is None else _named(quantized.left)
        if quantized is not None and quantized.convolutions:
            count = lists.counted(quantized.convolutions, "convolution")
            yield f"{count}: only products are quantized to {self.precision}"


def _named(left: Sequence[Left]) -> Iterator[str]:
    """Yield the layers that were not quantized, a text for each reason."""
    for reason in dict.fromkeys(each.reason for each in left):
        names = [each.name for each in left if each.reason == reason]
        yield f"{lists.first_of(names, _NAMED)} not quantized: {reason}"
