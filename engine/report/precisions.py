"""Reports of the step `quantize` as text: the share of work in the lower precision, and why other nodes keep theirs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

from engine.kit.quantization.report import HalfReport, Kept, NodeCounts, QdqReport, QuantizeReport
from engine.text import lists

_NAMED = 3
"""Upper limit of the nodes that one line of the report names."""


def lines(report: QuantizeReport) -> list[str]:
    """Return the precisions in a graph for a GPU, as lines; no lines for a report about a graph for a CPU."""
    if isinstance(report, HalfReport):
        return _half(report, _share(report.precision, report.share))
    if not isinstance(report, QdqReport):
        return []
    kind, quantized = report.precision, report.quantized
    if quantized is None:
        return _half(report.rest, f"nothing in {kind}, all in fp16: {report.unquantized}")
    work = "MatMul and Conv work" if kind == "int8" else "MatMul work"
    share = f"{quantized.share:.0%} of the {work} in {kind}, the rest in fp16"
    left = Counter(each.reason for each in quantized.left)
    lines = [*_half(report.rest, share), *(f"  not {kind}: {n} of its layers ({why})" for why, n in left.items())]
    convolutions = quantized.convolutions
    return [*lines, f"  not {kind}: {convolutions} convolutions, and not counted above"] if convolutions else lines


def _share(kind: str, share: float | None) -> str:
    return f"no matrix products to be in {kind}" if share is None else f"{share:.0%} of the MatMul work in {kind}"


def _half(report: HalfReport | None, head: str) -> list[str]:
    if report is None:
        return [head]
    return [head, *(f"  in fp32: {_kept(each)}" for each in report.kept), *_graph(report.graph)]


def _graph(counts: NodeCounts | None) -> list[str]:
    if counts is None:
        return []
    nodes = f"{lists.counted(counts.all, 'node')}, {counts.casts} of them Casts"
    return [f"  graph: {nodes}; {counts.computing} compute on the GPU, before any fusion by the runtime"]


def _kept(group: Kept) -> str:
    operators = lists.counts(group.operators)
    reached = "" if group.largest is None else f"; up to {_number(group.largest)}, {_names(group.nodes)}"
    return f"{operators} ({group.reason}{reached})"


def _names(nodes: Mapping[str, float | str]) -> str:
    """Return names and values of at most three nodes with the largest values, and how many more nodes there are."""
    furthest: Sequence[str] = sorted(nodes, key=lambda name: -_size(nodes[name]))[:_NAMED]
    more = f" and {len(nodes) - _NAMED} more" if len(nodes) > _NAMED else ""
    return ", ".join(f"{name} {_number(nodes[name])}" for name in furthest) + more


def _number(value: float | str) -> str:
    return value if isinstance(value, str) else f"{value:g}"


def _size(value: float | str) -> float:
    return float("inf") if isinstance(value, str) else value
