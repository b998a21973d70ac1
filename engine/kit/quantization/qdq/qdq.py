"""Q/DQ: layers in int8, fp8 or int4, calibrated on samples; layers with a large error stay in floating point."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from tempfile import mkdtemp
from typing import TYPE_CHECKING, Any

from engine.kit.onnx import ir_models, onnx_files, opsets
from engine.kit.onnx.opsets import OpsetError
from engine.kit.onnx.passes import linear_layers
from engine.kit.onnx.passes.pipeline import Pipeline
from engine.kit.quantization import activation_ranges, low_bits, precisions
from engine.kit.quantization.activation_ranges import Scaling
from engine.kit.quantization.keep_in import NOTHING, NamedLayers
from engine.kit.quantization.low_bits import Kind
from engine.kit.quantization.precisions import LeftAloneError
from engine.kit.quantization.qdq import matmuls, qdq_nodes, sensitivity, shortened
from engine.kit.quantization.qdq.matmuls import Candidates, Group, Weights
from engine.kit.quantization.qdq.sensitivity import SENSITIVE, GroupSelection
from engine.kit.quantization.report import Left, QdqReport, QdqTry, Quantized
from engine.kit.quantization.static import rows
from engine.kit.quantization.trials import Trials

if TYPE_CHECKING:
    import numpy as np
    import onnxruntime

_JUDGES = 32
"""Upper limit of the number of held-out samples, without shortened copies, on which the quantized model is judged."""
_IMAGES = 8
"""Upper limit of the number of held-out samples for a model with convolutions, whose runs take longer."""
_SHORTENED = {"calibrating": 3, "judging": 1}
"""How often a sample gets a shortened copy: every third sample for calibration, every sample for judging.

Short texts take little time to run, and quantization harms short texts before longer texts.
"""
CONVOLUTIONS = ("Conv", "ConvTranspose")


def quantize(
    graph_dir: Path,
    inputs: Sequence[Mapping[str, np.ndarray]],
    kind: Kind,
    scratch: Path,
    keep_in: NamedLayers = NOTHING,
) -> tuple[Pipeline, QdqReport]:
    """Return the passes that put Q/DQ nodes in front of chosen MatMuls of the model in `graph_dir`, and a report.

    All ranges are symmetric. int8 has a scale per activation, and a scale per output channel of a weight. fp8 (E4M3)
    has a scale per tensor. int4 is for weights only, with a scale per block of 128 inputs. Every scale is exact in
    fp16. All tensors that no Q/DQ node quantizes stay float32. Where nothing can be quantized, the model stays
    unchanged, and `unquantized` in the report says why. Large weights of the returned model are mapped from files in
    `scratch`. The same model and the same samples give the same bytes. Raises
    StepError where the model cannot run on the samples. The nodes of `keep_in` are not quantized.
    """
    model = onnx_files.load_mapped(graph_dir)
    try:
        precisions.refuse_quantized(model)
    except LeftAloneError as error:
        return Pipeline(ir_models.of(model)), _unquantized(kind, str(error))
    if not inputs:
        return Pipeline(ir_models.of(model)), _unquantized(kind, "there are no samples to calibrate on")
    try:
        model = opsets.raised(model, low_bits.OPSETS[kind])
    except OpsetError as error:
        return Pipeline(ir_models.of(model)), _unquantized(kind, str(error))
    passes = Pipeline(ir_models.of(model))
    passes.run(linear_layers.split)
    trials = Trials.of(passes.model, Path(mkdtemp(dir=scratch)) / "base")
    passes.model = trials.graph()
    weights = Weights(trials.model)
    candidates = matmuls.find(trials.model, weights, kind, keep_in.nodes(trials.model))
    if not candidates.groups:
        return passes, _unquantized(
            kind, "it has no MatMul or convolution with constant weights that could be quantized"
        )
    scalings, report = _chosen(trials, weights, candidates, inputs, kind)
    passes.run(qdq_nodes.insert, weights, scalings, kind)
    return passes, report


def _chosen(
    trials: Trials, weights: Weights, candidates: Candidates, inputs: Sequence[Mapping[str, np.ndarray]], kind: Kind
) -> tuple[dict[Group, Scaling], QdqReport]:
    """Return the groups to quantize with the scaling of their inputs, and a report."""
    convolved = {group.source for group in candidates.groups if group.is_convolution}
    if convolved:  # a run gives all inputs of convolutions at once, so that a batch would need much memory
        inputs = rows.apart(trials.inputs, inputs)
    calibrating, judging = rows.divided(inputs, _JUDGES)
    calibrating = shortened.with_some(calibrating, every=_SHORTENED["calibrating"])
    judging = shortened.with_some(judging, every=_SHORTENED["judging"])
    judging = judging[:: -(-len(judging) // _IMAGES)] if convolved else judging
    work = matmuls.work(trials, calibrating, kind)
    total = sum(work.values())
    shares = {group: sum(work[name] for name in group.results) / total for group in candidates.groups}
    print(f"looking at {len(candidates.groups)} tensors on {len(calibrating)} samples")
    scalings = scaled(trials, weights, candidates.groups, calibrating, kind)

    def opened(chosen: Collection[Group]) -> onnxruntime.InferenceSession:
        graph = trials.graph()
        qdq_nodes.insert(graph, weights, {group: scalings[group] for group in chosen}, kind)
        return trials.session(graph)

    selection = sensitivity.select(candidates.groups, shares, opened, judging)
    others = set(CONVOLUTIONS) - set(matmuls.layers_of(kind))
    convolutions = sum(node.op_type in others for node in trials.model.graph)
    report = replace(
        _report(candidates, selection, shares, kind, convolutions),
        smoothed=sum(scalings[group].factors is not None for group in selection.chosen),
        samples=len(calibrating),
        held_out=len(judging),
    )
    return {group: scalings[group] for group in selection.chosen}, report


def scaled(
    trials: Trials,
    weights: Weights,
    groups: Sequence[Group],
    samples: Sequence[Mapping[str, np.ndarray]],
    kind: Kind,
    **tried: Any,
) -> dict[Group, Scaling]:
    """Return the smoothing and the scale of each group's input; `tried` is passed on to `activation_ranges.choose`."""
    import numpy as np

    convolved = {group.source for group in groups if group.is_convolution}
    sources = [group.source for group in groups]
    observations = activation_ranges.observe(trials, sources, samples, channels_first=convolved)
    readers = [name for group in groups for name in set(group.weights)]
    scalings = {}
    for group in groups:
        # A smoothed copy of a shared weight would have to be stored for each of its layers.
        shared = any(readers.count(name) > 1 for name in group.weights)
        matrices = [_matrix(weights.array(name), group) for name in group.weights]
        weight = np.concatenate(matrices, axis=1)
        narrowed = {**tried, "alphas": (None,)} if shared or group.is_convolution else tried
        scalings[group] = activation_ranges.choose(observations[group.source], weight, kind, **narrowed)
    return scalings


def _matrix(weight: np.ndarray, group: Group) -> np.ndarray:
    """Return a weight as a matrix [input channels, outputs]; each place of a convolution's window has outputs."""
    import numpy as np

    if not group.is_convolution:
        return weight
    return np.moveaxis(weight, 1, 0).reshape(weight.shape[1], -1)


def _report(
    candidates: Candidates,
    selection: GroupSelection[Group],
    shares: Mapping[Group, float],
    kind: Kind,
    convolutions: int,
) -> QdqReport:
    left = [
        Left(candidates.names[result], SENSITIVE, round(error, 6))
        for group, error in selection.left.items()
        for result in group.results
    ]
    left += [Left(candidates.names[result], reason, None) for result, reason in candidates.unfit.items()]
    matmuls = tuple(candidates.names[result] for group in selection.chosen for result in group.results)
    share = _share(selection.chosen, shares)
    quantized = {kind: Quantized(share=share, matmuls=matmuls, left=tuple(left), convolutions=convolutions)}
    return QdqReport(
        precision=kind,
        int8=quantized.get("int8"),
        fp8=quantized.get("fp8"),
        int4=quantized.get("int4"),
        cosine=selection.cosines.rounded(),
        path=tuple(QdqTry(_share(variant, shares), **vars(cosines.rounded())) for variant, cosines in selection.path),
    )


def _share(chosen: Sequence[Group], shares: Mapping[Group, float]) -> float:
    return round(sum(shares[group] for group in chosen), 4)


def _unquantized(kind: Kind, reason: str) -> QdqReport:
    print(f"not quantized: {reason}")
    return QdqReport(precision=kind, unquantized=reason)
