"""Half search: as much of a graph in half precision as answers like float32 on samples, by emulation."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from engine.kit.inputs.cases import Case
from engine.kit.onnx import onnx_files, topology
from engine.kit.quantization import fidelity
from engine.kit.quantization.fidelity import Fidelity
from engine.kit.quantization.half import emulation, half, half_choice, infinities, matmul_work, pairs, ranges, scaling
from engine.kit.quantization.half.half_choice import Choice
from engine.kit.quantization.half.ranges import Ranges
from engine.kit.quantization.half.signatures import Kind
from engine.kit.quantization.report import HalfReport, HalfTry
from engine.runtimes.onnxruntime import session as ort

if TYPE_CHECKING:
    import onnx

GOAL = 0.9995
"""The least cosine against float32, of the worst sample, at which the search ends."""
RELATIVE = 0.04
"""The largest error, as a share of the largest value of an output, at which it ends: `bounds` ask for 0.05."""
_STEP = 4.0
"""By how much the limit of large values falls from one try to the next: two bits."""


@dataclass(frozen=True)
class _Try:
    limit: float
    choice: Choice
    fidelity: Fidelity

    @property
    def worst(self) -> float:
        """The cosine of the worst sample."""
        return self.fidelity.cosine.worst

    @property
    def is_enough(self) -> bool:
        return self.worst >= GOAL and self.fidelity.relative <= RELATIVE

    def in_words(self) -> HalfTry:
        return HalfTry(limit=float(f"{self.limit:.4g}"), fp32=len(self.choice.kept), cosine=round(self.worst, 6))


def lowered(
    model: onnx.ModelProto, asked: Sequence[Case], kind: Kind, scratch: Path
) -> tuple[onnx.ModelProto, HalfReport]:
    """Return a float32 model with all that bears it in half precision, and what stayed, why, and at what cosine.

    The cases' inputs are what is measured on; their outputs are not looked at: the truth is the float32 model itself.
    Where that is quantized, both are compared without it (`pairs`). First everything goes that does not sum, take
    exponentials or leave the range. While the worst cosine is below `GOAL`, or an error above `RELATIVE`, tensors of
    large values return to float32, the largest first. `model` is changed. Raises StepError where it cannot be run on
    the cases.
    """
    topology.name_nodes(model)
    truth = fidelity.answered(ort.unoptimized_graph(pairs.bypassed(model), scratch), asked)
    inputs = [case.inputs for case in asked]
    saturated = infinities.saturate(model)
    scaled = scaling.scale_products(model, ranges.measure(model, inputs, scratch), kind)
    plain = pairs.bypassed(model)
    tries = _tries(plain, ranges.measure(plain, inputs, scratch), truth, kind, scratch)
    best = tries[-1] if tries[-1].is_enough else max(tries, key=lambda each: each.worst)
    seen = ranges.measure(model, inputs, scratch, sized=matmul_work.tensors(model))
    choice = half_choice.choose(model, seen, kind, best.limit)
    done = matmul_work.work(model, {**matmul_work.stored(model), **seen.extents})
    kept = half_choice.grouped(model, choice, seen)
    report = HalfReport(
        precision=kind,
        kept=tuple(kept),
        cosine=best.fidelity.cosine,
        share=matmul_work.share(done, choice.low),
        saturated=tuple(saturated),
        scaled=tuple(scaled),
        path=tuple(each.in_words() for each in tries),
        samples=len(asked),
        casts=half.convert(model, choice.low, seen.types, kind),
    )
    return model, report


def _tries(model: onnx.ModelProto, seen: Ranges, truth: Sequence[Case], kind: Kind, scratch: Path) -> list[_Try]:
    """Return what was tried, from the largest limit down to the first at which the goal is reached."""
    tries: list[_Try] = []
    for limit in _limits(model, seen, kind):
        choice = half_choice.choose(model, seen, kind, limit)
        if tries and choice.low == tries[-1].choice.low:
            continue
        tries.append(_tried(model, truth, choice, limit, seen=seen, kind=kind, scratch=scratch))
        print(f"{len(choice.kept)} of {len(choice.kept) + len(choice.low)} nodes in fp32: cosine {tries[-1].worst:.6f}")
        if tries[-1].is_enough:
            break
    return tries


def _limits(model: onnx.ModelProto, seen: Ranges, kind: Kind) -> Iterator[float]:
    """Yield the range of the precision, then ever smaller limits down to where no float is below."""
    yield half_choice.largest_limit(kind)
    names = {name for node in model.graph.node for name in node.output}
    sizes = [size for name in names if 0 < (size := seen.largest.get(name, 0.0)) <= half_choice.largest_limit(kind)]
    limit = max(sizes, default=0.0)
    if kind == "fp16":
        limit = half_choice.largest_limit(kind)
    while sizes and limit >= min(sizes):
        limit /= _STEP
        yield limit


def _tried(
    model: onnx.ModelProto,
    truth: Sequence[Case],
    choice: Choice,
    limit: float,
    *,
    seen: Ranges,
    kind: Kind,
    scratch: Path,
) -> _Try:
    candidate = onnx_files.copied(model)
    half.convert(candidate, choice.low, seen.types, kind)
    emulation.emulate(candidate, scratch)
    return _Try(limit, choice, fidelity.measure(truth, ort.unoptimized_graph(candidate, scratch)))
