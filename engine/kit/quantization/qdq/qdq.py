"""Q/DQ: MatMuls in int8, fp8 or int4, smoothed, calibrated on samples, and chosen by measured error."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

from engine.kit.onnx import onnx_files, opsets
from engine.kit.onnx.opsets import OpsetError
from engine.kit.onnx.passes import linear_layers
from engine.kit.quantization import activation_ranges, low_bits, precisions
from engine.kit.quantization.activation_ranges import Scaling
from engine.kit.quantization.low_bits import Kind
from engine.kit.quantization.precisions import LeftAloneError
from engine.kit.quantization.qdq import matmuls, qdq_nodes, sensitivity, shortened
from engine.kit.quantization.qdq.matmuls import Candidates, Group, Weights
from engine.kit.quantization.qdq.sensitivity import GroupSelection
from engine.kit.quantization.report import Left, QdqReport, QdqTry, Quantized
from engine.kit.quantization.trials import Trials

if TYPE_CHECKING:
    import numpy as np
    import onnx

_HELD_OUT = 4
"""Every fourth sample is kept for judging what the others calibrated."""
_FEW = 8
"""Fewer samples than these calibrate and judge alike."""
_JUDGES = 32
_SHORTENED = {"calibrating": 3, "judging": 1}
"""One in so many samples is there a second time, cut to a few tokens: these are quick to run, and the first to fail."""
SENSITIVE = "sensitive: quantized alone, it does the most harm for its share of the work"
CONVOLUTIONS = ("Conv", "ConvTranspose")


def quantize(
    graph_dir: Path, inputs: Sequence[Mapping[str, np.ndarray]], kind: Kind, scratch: Path
) -> tuple[onnx.ModelProto, QdqReport]:
    """Return `graph_dir/model.onnx`, in float32, with Q/DQ on chosen MatMuls, and a report.

    Symmetric: int8 with a scale per tensor and per output channel of a weight, fp8 (E4M3) with a scale per tensor,
    int4 for weights alone, a scale per block of 128 inputs. All else stays float32; scales are exact in fp16.
    Where nothing was quantized, the model is returned as it came and `unquantized` says why.
    The same inputs give the same bytes. Raises StepError where the model cannot run on the samples.
    """
    model = onnx_files.load(graph_dir)
    try:
        precisions.refuse_quantized(model)
    except LeftAloneError as error:
        return model, _unquantized(kind, str(error))
    if not inputs:
        return model, _unquantized(kind, "there are no samples to calibrate on")
    try:
        model = opsets.raised(model, low_bits.OPSETS[kind])
    except OpsetError as error:
        return model, _unquantized(kind, str(error))
    linear_layers.split(model)
    with TemporaryDirectory(dir=scratch) as folder:
        trials = Trials.of(model, Path(folder) / "base")
        graph = trials.graph()
        weights = Weights(trials, graph)
        found = matmuls.find(graph, weights, kind)
        if not found.groups:
            reason = "it has no MatMul with a constant matrix that could be quantized"
            return trials.whole(graph), _unquantized(kind, reason)
        return _quantized(trials, weights, found, inputs, kind)


def _quantized(
    trials: Trials, weights: Weights, found: Candidates, inputs: Sequence[Mapping[str, np.ndarray]], kind: Kind
) -> tuple[onnx.ModelProto, QdqReport]:
    fit, judged = _divided(inputs)
    work = matmuls.work(trials, fit)
    total = sum(work.values())
    shares = {group: sum(work[name] for name in group.results) / total for group in found.groups}
    print(f"looking at {len(found.groups)} tensors on {len(fit)} samples")
    scalings = scaled(trials, weights, found.groups, fit, kind)

    def variant(chosen: Sequence[Group]) -> onnx.ModelProto:
        graph = trials.graph()
        qdq_nodes.insert(graph, weights, {group: scalings[group] for group in chosen}, kind)
        return graph

    selection = sensitivity.select(found.groups, shares, lambda chosen: trials.session(variant(tuple(chosen))), judged)
    convolutions = sum(node.op_type in CONVOLUTIONS for node in trials.graph().graph.node)
    report = replace(
        _report(found, selection, shares, kind, convolutions),
        smoothed=sum(scalings[group].factors is not None for group in selection.chosen),
        samples=len(fit),
        held_out=len(judged),
    )
    return trials.whole(variant(selection.chosen)), report


def scaled(
    trials: Trials,
    weights: Weights,
    groups: Sequence[Group],
    samples: Sequence[Mapping[str, np.ndarray]],
    kind: Kind,
    **tried: Any,
) -> dict[Group, Scaling]:
    """Return how each group's tensor is smoothed and scaled; `tried` narrows `activation_ranges.choose` down."""
    import numpy as np

    seen = activation_ranges.observe(trials, [group.source for group in groups], samples)
    readers = [name for group in groups for name in set(group.weights)]
    scalings = {}
    for group in groups:
        # A weight of several layers would have to be stored once for each of them, were it smoothed.
        shared = any(readers.count(name) > 1 for name in group.weights)
        weight = np.concatenate([weights.array(name) for name in group.weights], axis=1)
        narrowed = {**tried, "alphas": (None,)} if shared else tried
        scalings[group] = activation_ranges.choose(seen[group.source], weight, kind, **narrowed)
    return scalings


def _divided(inputs: Sequence[Any]) -> tuple[list[Any], list[Any]]:
    """Return the samples that calibrate and those that judge, some of each shortened."""
    fit, judges = list(inputs), list(inputs)
    if len(inputs) >= _FEW:
        fit = [sample for number, sample in enumerate(inputs, 1) if number % _HELD_OUT]
        judges = judges[_HELD_OUT - 1 :: _HELD_OUT]
        judges = judges[:: -(-len(judges) // _JUDGES)]
    return (
        shortened.with_some(fit, every=_SHORTENED["calibrating"]),
        shortened.with_some(judges, every=_SHORTENED["judging"]),
    )


def _report(
    found: Candidates, selection: GroupSelection, shares: Mapping[Group, float], kind: Kind, convolutions: int
) -> QdqReport:
    left = [
        Left(found.names[result], SENSITIVE, round(error, 6))
        for group, error in selection.left.items()
        for result in group.results
    ]
    left += [Left(found.names[result], reason, None) for result, reason in found.unfit.items()]
    matmuls = tuple(found.names[result] for group in selection.chosen for result in group.results)
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
