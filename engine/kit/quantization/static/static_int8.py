"""Static int8: a convolutional graph for ONNX Runtime's CPU kernels, calibrated on samples."""

from __future__ import annotations

import functools
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

from engine.kit.onnx import ir_models, mapped_weights, onnx_files, surgery
from engine.kit.onnx.ir_models import Pipeline
from engine.kit.quantization import fidelity, matmul_work, precisions, trials
from engine.kit.quantization.fidelity import SENSITIVE, GroupSelection
from engine.kit.quantization.keep_in import NOTHING, NamedLayers
from engine.kit.quantization.precisions import LeftAloneError
from engine.kit.quantization.report import Left, StaticReport
from engine.kit.quantization.static import layers, ranges, static_nodes
from engine.kit.quantization.static.layers import GainingLayers, StaticLayer
from engine.kit.quantization.static.ranges import ByteRange, TensorValues
from engine.runtimes.onnxruntime import session as ort

if TYPE_CHECKING:
    import numpy as np
    import onnx_ir as ir
    import onnxruntime

_APART = (
    "ConstantSharing",
    "ConvActivationFusion",
    "ConvAddActivationFusion",
    "GemmActivationFusion",
    "MatMulActivationFusion",
    "MatMulScaleFusion",
    "MatmulTransposeFusion",
    "SkipLayerNormFusion",
)
"""ONNX Runtime's fusions of convolutions and products with other operators, which have no form in int8."""
_NORMALIZATIONS = frozenset({"LayerNormalization", "SimplifiedLayerNormalization", "SkipLayerNormalization"})
_IMAGE_RANK = 4
"""The number of axes of images: batch, channels, height and width, in any order of the last three."""
_RANGES = {"the least error": ranges.closest, "every value": ranges.widest}
"""The rules by which the range of a tensor is chosen; the rule with the better answers on held-out samples is kept."""


def suits(fused: Path, *, sampled: bool = False) -> bool:
    """Whether static int8 suits the graph in the folder `fused`, which then is faster than in dynamic int8.

    It suits a graph of which at least as many convolutions gain from int8 as it has normalizations. Of graphs that take
    images, it suits those with several convolutions, and where samples calibrate it (`sampled`), all. Without samples,
    a vision transformer, whose only convolution cuts the image into patches, keeps dynamic int8.
    """
    from onnx_ir.passes.common import LiftConstantsToInitializersPass

    model = LiftConstantsToInitializersPass(lift_all_constants=False)(ir_models.load(fused)).model
    counts = Counter(node.op_type for node in model.graph)
    dense = layers.are_dense(model)
    if dense > 0 and dense >= sum(counts[name] for name in _NORMALIZATIONS):
        return True
    takes_images = any(each.shape is not None and len(each.shape) == _IMAGE_RANK for each in model.graph.inputs)
    return takes_images and counts[layers.CONVOLUTION] > (0 if sampled else 1)


def quantize(
    fused: Path,
    out: Path,
    samples: Sequence[Mapping[str, np.ndarray]],
    *,
    reduce_range: bool,
    keep_in: NamedLayers = NOTHING,
) -> StaticReport:
    """Quantize the model in the folder `fused`, write it to the folder `out`, and return a report.

    Activations are unsigned 8-bit integers with a scale per tensor, weights are signed with a scale per output channel.
    The quantized model has no session options of its own: convolutions need tensor layouts that ONNX Runtime chooses
    at its level `all` only. Raises LeftAloneError where nothing gains, StepError where the model cannot run on samples.
    The nodes of `keep_in` stay in fp32.
    """
    with TemporaryDirectory(dir=out.parent) as folder, mapped_weights.spilling(Path(folder)):
        passes = Pipeline(_prepared(fused, Path(folder)))
        passes.run(surgery.name_nodes, with_output=True)
        apart = trials.rows_apart(onnx_files.inputs(onnx_files.load_graph(fused)), samples)
        trial = Trial(passes.model, Path(folder), reduce_range=reduce_range)
        chosen, scales, report = _chosen(trial, keep_in, *trials.held_out(apart))
        passes.run(static_nodes.insert, chosen, scales, reduce_range=reduce_range)
        onnx_files.save(ir_models.proto(passes.model), out)
    return replace(report, bytes=precisions.finished(fused, out, report.quantized))


def _prepared(fused: Path, scratch: Path) -> ir.Model:
    """Return the model with folded constants and fused activation functions, in an opset with scales per channel."""
    onnx_files.save(precisions.raised(fused, static_nodes.OLDEST_OPSET), scratch / "raised")
    ort.optimize(scratch / "raised", scratch / "folded", level="extended", disabled=_APART)
    return ir_models.load(scratch / "folded")


@dataclass(frozen=True)
class Trial:
    """A model of which copies with quantized layers are run by the kernels that will serve them."""

    model: ir.Model
    scratch: Path
    reduce_range: bool

    def opened(self, chosen: Collection[StaticLayer], scales: Mapping[str, ByteRange]) -> onnxruntime.InferenceSession:
        """Open a copy with the chosen layers quantized, on one thread, so that equal inputs give equal bits."""
        model = self.model.clone()
        static_nodes.insert(model, chosen, scales, reduce_range=self.reduce_range)
        with TemporaryDirectory(dir=self.scratch) as folder:
            onnx_files.save_linked(ir_models.proto(model), Path(folder))
            return ort.session(Path(folder), threads=1)


def _chosen(
    trial: Trial,
    keep_in: NamedLayers,
    calibrating: Sequence[Mapping[str, np.ndarray]],
    judging: Sequence[Mapping[str, np.ndarray]],
) -> tuple[tuple[StaticLayer, ...], Mapping[str, ByteRange], StaticReport]:
    multiplications = matmul_work.measured(trial.model, matmul_work.largest(calibrating), trial.scratch)
    candidates = layers.find(trial.model, multiplications, keep_in.nodes(trial.model))
    if not candidates.layers:
        raise LeftAloneError("it has no convolution that int8 makes faster")
    counts = {surgery.output_names(node)[0]: count for node, count in multiplications.items()}
    total = sum(counts.values())
    shares = {layer: counts[layer.result] / total for layer in candidates.layers}
    tensors = sorted({name for layer in candidates.layers for name in _tensors(layer)})
    print(f"looking at {len(tensors)} tensors on {len(calibrating)} samples")
    observed = ranges.observe(trial.model, tensors, calibrating, trial.scratch)
    rule, scales = _better(trial, candidates.layers, observed, judging)
    selection = fidelity.selected(candidates.layers, shares, functools.partial(trial.opened, scales=scales), judging)
    report = StaticReport(
        quantized=dict(sorted(Counter(layer.kind for layer in selection.chosen).items())),
        of=dict(sorted(Counter(node.op_type for node in multiplications if node.op_type in layers.KINDS).items())),
        share=selection.share,
        ranges=rule,
        left=_left(trial.model, candidates, selection),
        cosine=selection.cosines.rounded(),
        path=selection.tries,
        samples=len(calibrating),
        held_out=len(judging),
    )
    return selection.chosen, scales, report


def _better(
    trial: Trial,
    every: Sequence[StaticLayer],
    observed: Mapping[str, TensorValues],
    judging: Sequence[Mapping[str, np.ndarray]],
) -> tuple[str, Mapping[str, ByteRange]]:
    """Return the rule for ranges with the better worst answer where every layer is quantized, and its ranges."""
    rules = {rule: {name: choose(each) for name, each in observed.items()} for rule, choose in _RANGES.items()}
    truth = fidelity.answered(trial.opened((), {}), fidelity.cases(judging))
    worst = {rule: fidelity.measure(truth, trial.opened(every, rules[rule])).cosine.worst for rule in rules}
    best = max(worst, key=lambda rule: worst[rule])
    print(f"ranges with {best}: {', '.join(f'{rule} gives a cosine of {worst[rule]:.5f}' for rule in worst)}")
    return best, rules[best]


def _left(model: ir.Model, candidates: GainingLayers, selection: GroupSelection[StaticLayer]) -> tuple[Left, ...]:
    """Return the layers that stay in floating point with the reasons, in the order of the graph."""
    harm = {layer.result: round(error, 6) for layer, error in selection.left.items()}
    left = []
    for node in model.graph:
        result = surgery.output_names(node)[0]
        if result in harm:
            left.append(Left(node.name or result, SENSITIVE, harm[result]))
        elif result in candidates.left:
            left.append(Left(node.name or result, candidates.left[result], None))
    return tuple(left)


def _tensors(layer: StaticLayer) -> tuple[str, ...]:
    return (layer.source, layer.output) if layer.is_convolution else (layer.source,)
