"""Half search: finds how many nodes can run in half precision while the outputs stay near the float32 outputs."""

from __future__ import annotations

import itertools
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from engine.kit.inputs.cases import Case
from engine.kit.onnx import surgery
from engine.kit.onnx.ir_models import Pipeline
from engine.kit.quantization import fidelity, matmul_work, trials
from engine.kit.quantization.fidelity import Fidelity
from engine.kit.quantization.half import emulation, half, half_choice, overflow, ranges
from engine.kit.quantization.half.half_choice import Choice
from engine.kit.quantization.half.ranges import Ranges
from engine.kit.quantization.half.signatures import Kind
from engine.kit.quantization.keep_in import NOTHING, NamedLayers
from engine.kit.quantization.report import HalfReport, HalfTry, NodeCounts

if TYPE_CHECKING:
    import numpy as np
    import onnx_ir as ir

GOAL = 0.9995
"""The cosine against float32 that the worst sample must reach before the search ends."""
RELATIVE = 0.04
"""The search for operators in fp16 ends when no error is above this share of the output's largest value.

The default bound of validation on the largest error in fp16 is 0.05.
"""
_STEP = 4.0
"""The number by which the limit on a node's values is divided from one try to the next."""
_QUANTIZE, _DEQUANTIZE = "QuantizeLinear", "DequantizeLinear"
_NO_KERNEL = frozenset({"Constant", "Flatten", "Identity", "Reshape", "Shape", "Size", "Squeeze", "Unsqueeze"})
"""Operators that give numbers a name or another shape, which ONNX Runtime does without a kernel."""


@dataclass(frozen=True)
class _Try:
    """A try of the search: the limit on a node's values, the nodes that the limit selects, the measured fidelity.

    `wide_sums` names the operators that may sum in half precision, because their kernels sum in float32.
    """

    limit: float
    wide_sums: Collection[str]
    choice: Choice
    fidelity: Fidelity

    @property
    def worst(self) -> float:
        """The cosine of the worst sample."""
        return self.fidelity.cosine.worst

    @property
    def is_enough(self) -> bool:
        """Whether the outputs of the changed graph are near enough to float32's for the search to end."""
        return self.worst >= GOAL and self.fidelity.relative <= RELATIVE

    def reported(self) -> HalfTry:
        """Return the try in the form that the report of the step `quantize` shows."""
        return HalfTry(limit=float(f"{self.limit:.4g}"), fp32=len(self.choice.reasons), cosine=round(self.worst, 6))


def lowered(
    passes: Pipeline,
    cases: Sequence[Case],
    kind: Kind,
    scratch: Path,
    keep_in: NamedLayers = NOTHING,
    *,
    wide_sums: Collection[str] = (),
) -> HalfReport:
    """Let as many nodes as possible of a float32 model compute in half precision, and return a report.

    The search runs changed copies of the model on the inputs of the cases, and compares the copies with the float32
    model, not with the outputs of the cases. For the comparison, `without_pairs` replaces Q/DQ pairs on activations
    by Identity. The first try leaves only nodes in float32 that sum, take exponentials, or have values beyond the range
    of the half precision. While the worst cosine is below `GOAL`, or an error is above `RELATIVE`, more nodes return to
    float32, and the nodes with the largest values return first. Raises StepError where the model cannot run on the
    cases. The nodes of `keep_in` stay in float32. The operators named by `wide_sums`, whose kernels sum in float32,
    compute in half precision in a try before all others, and in no other try.
    """
    model = passes.model
    passes.run(surgery.name_nodes)
    kept = keep_in.nodes(model)
    truth = fidelity.answered(trials.opened(without_pairs(model), scratch), cases)
    inputs = [case.inputs for case in cases]
    saturated = passes.run(overflow.saturate)
    scaled = passes.run(overflow.scale_products, ranges.measure(model, inputs, scratch), kind)
    plain = without_pairs(model)
    tries = _tries(plain, ranges.measure(plain, inputs, scratch), truth, kind, scratch, kept=kept, wide_sums=wide_sums)
    best = tries[-1] if tries[-1].is_enough else max(tries, key=lambda each: each.worst)
    measured = ranges.measure(model, inputs, scratch)
    choice = half_choice.choose(model, measured, kind, best.limit, kept, wide_sums=best.wide_sums)
    return HalfReport(
        precision=kind,
        kept=tuple(half_choice.grouped(model, choice, measured)),
        cosine=best.fidelity.cosine,
        share=_share(model, choice, inputs, scratch),
        saturated=tuple(saturated),
        scaled=tuple(scaled),
        path=tuple(each.reported() for each in tries),
        samples=len(cases),
        casts=passes.run(half.convert, choice.low, measured.types, kind),
        graph=counted(passes.model),
    )


def _share(model: ir.Model, choice: Choice, samples: Sequence[Mapping[str, np.ndarray]], scratch: Path) -> float | None:
    """Return the share of the multiplications, on the largest sample, of the nodes that are chosen for half precision.

    The share is None for a model without multiplications.
    """
    counts = matmul_work.measured(model, matmul_work.largest(samples), scratch)
    total = sum(counts.values())
    return round(sum(count for node, count in counts.items() if node.name in choice.low) / total, 4) if total else None


def _tries(
    model: ir.Model,
    measured: Ranges,
    truth: Sequence[Case],
    kind: Kind,
    scratch: Path,
    *,
    kept: Mapping[str, str],
    wide_sums: Collection[str],
) -> list[_Try]:
    """Return the tries of the search up to the first that reaches the goal.

    `wide_sums` is tried first, and then limits on a node's values from the largest down.
    """
    tries: list[_Try] = []
    first = [(half_choice.largest_limit(kind), wide_sums)]
    for limit, sums in itertools.chain(first, ((limit, ()) for limit in _limits(model, measured, kind))):
        choice = half_choice.choose(model, measured, kind, limit, kept, wide_sums=sums)
        if tries and choice.low == tries[-1].choice.low:
            continue
        converted = _converted(model, choice, measured=measured, kind=kind)
        tries.append(_Try(limit, sums, choice, fidelity.measure(truth, trials.opened(converted, scratch))))
        single, total = len(choice.reasons), len(choice.reasons) + len(choice.low)
        print(f"{single} of {total} nodes in fp32: cosine {tries[-1].worst:.6f}")
        if tries[-1].is_enough:
            break
    return tries


def _limits(model: ir.Model, measured: Ranges, kind: Kind) -> Iterator[float]:
    """Yield the limits on a node's values to try: the largest value that the type allows first, then smaller limits.

    The last limit is below the largest value of every tensor.
    """
    yield half_choice.largest_limit(kind)
    reached = [measured.largest.get(name, 0.0) for node in model.graph for name in surgery.output_names(node)]
    sizes = [size for size in reached if 0 < size <= half_choice.largest_limit(kind)]
    limit = max(sizes, default=0.0)
    if kind == "fp16":
        limit = half_choice.largest_limit(kind)
    while sizes and limit >= min(sizes):
        limit /= _STEP
        yield limit


def _converted(model: ir.Model, choice: Choice, *, measured: Ranges, kind: Kind) -> ir.Model:
    """Return a copy of the model that emulates the chosen nodes in half precision on the CPU."""
    candidate = model.clone()
    half.convert(candidate, choice.low, measured.types, kind)
    emulation.emulate(candidate)
    return candidate


def without_pairs(model: ir.Model) -> ir.Model:
    """Return a copy of the model in which an Identity replaces every QuantizeLinear and its DequantizeLinear.

    A tiny error of fp16 can make a Q/DQ pair round a number up instead of down, which changes the number by the whole
    distance between two int8 numbers. Behind a Q/DQ pair, the error of fp16 cannot be told from the error of int8. In
    the copy, quantized weights stay quantized. The nodes of the copy keep their names.
    """
    copy = model.clone()
    graph = copy.graph
    for node in list(graph):
        source = node.inputs[0] if node.inputs else None
        quantizer = None if source is None else source.producer()
        if node.op_type == _DEQUANTIZE and quantizer is not None and quantizer.op_type == _QUANTIZE:
            name, (output,) = node.name or "", surgery.output_names(node)
            surgery.replace(node, [surgery.node("Identity", quantizer.inputs[:1], output, name)])
    unread = [node for node in graph if node.op_type == _QUANTIZE and surgery.is_unread(node.outputs[0])]
    graph.remove(unread, safe=True)
    surgery.drop_unread(graph.initializers.values())
    return copy


def counted(model: ir.Model) -> NodeCounts:
    """Return the counts of the nodes of the main graph.

    Nodes that compute from shapes and stored tensors alone are left out of `computing`: ONNX Runtime runs them on the
    CPU or ahead of time.
    """
    shapes = set(model.graph.initializers.values())
    computing = 0
    for node in model.graph:
        if node.op_type in {"Constant", "Shape", "Size"} or shapes.issuperset(filter(None, node.inputs)):
            shapes.update(node.outputs)
        elif node.op_type not in _NO_KERNEL:
            computing += 1
    casts = sum(node.op_type == "Cast" for node in model.graph)
    return NodeCounts(sum(1 for _ in model.graph), casts, computing)
