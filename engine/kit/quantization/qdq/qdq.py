"""Q/DQ: layers in int8, fp8 or int4, calibrated on samples; layers with a large error stay in floating point."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from tempfile import mkdtemp
from typing import TYPE_CHECKING, Any

from engine.kit.onnx import ir_models
from engine.kit.onnx.ir_models import Pipeline
from engine.kit.onnx.passes import linear_layers
from engine.kit.quantization import activation_ranges, fidelity, low_bits, precisions
from engine.kit.quantization.activation_ranges import Scaling
from engine.kit.quantization.fidelity import SENSITIVE, GroupSelection
from engine.kit.quantization.keep_in import NOTHING, NamedLayers
from engine.kit.quantization.low_bits import Kind
from engine.kit.quantization.precisions import LeftAloneError
from engine.kit.quantization.qdq import matmuls, qdq_nodes
from engine.kit.quantization.qdq.matmuls import Candidates, Group, Weights
from engine.kit.quantization.report import Left, QdqReport, Quantized
from engine.kit.quantization.trials import Trials, held_out, rows_apart

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
_SHORT_LENGTHS = (1, 2, 3, 4)
"""The numbers of tokens that a shortened text keeps between its first token and its last, such as [CLS] and [SEP]."""


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
    if not inputs:
        return Pipeline(ir_models.load(graph_dir)), _unquantized(kind, "there are no samples to calibrate on")
    try:
        passes = Pipeline(ir_models.of(precisions.raised(graph_dir, low_bits.OPSETS[kind])))
    except LeftAloneError as error:
        return Pipeline(ir_models.load(graph_dir)), _unquantized(kind, str(error))
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
    convolved = {group.source for group in candidates.groups if group.is_convolution}
    if convolved:  # a run gives all inputs of convolutions at once, so that a batch would need much memory
        inputs = rows_apart(trials.inputs, inputs)
    calibrating, judging = held_out(inputs, _JUDGES)
    calibrating = with_shortened(calibrating, every=_SHORTENED["calibrating"])
    judging = with_shortened(judging, every=_SHORTENED["judging"])
    judging = judging[:: -(-len(judging) // _IMAGES)] if convolved else judging
    multiplications = matmuls.multiplications(trials, calibrating, kind)
    total = sum(multiplications.values())
    shares = {group: sum(multiplications[name] for name in group.results) / total for group in candidates.groups}
    print(f"looking at {len(candidates.groups)} tensors on {len(calibrating)} samples")
    scalings = scaled(trials, weights, candidates.groups, calibrating, kind)

    def opened(chosen: Collection[Group]) -> onnxruntime.InferenceSession:
        graph = trials.graph()
        qdq_nodes.insert(graph, weights, {group: scalings[group] for group in chosen}, kind)
        return trials.session(graph)

    selection = fidelity.selected(candidates.groups, shares, opened, judging)
    others = set(CONVOLUTIONS) - set(matmuls.layers_of(kind))
    convolutions = sum(node.op_type in others for node in trials.model.graph)
    report = replace(
        _report(candidates, selection, kind, convolutions),
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
    quantized = Quantized(share=selection.share, matmuls=matmuls, left=tuple(left), convolutions=convolutions)
    of_kind: dict[str, Any] = {kind: quantized}
    return QdqReport(precision=kind, cosine=selection.cosines.rounded(), path=selection.tries, **of_kind)


def _unquantized(kind: Kind, reason: str) -> QdqReport:
    print(f"not quantized: {reason}")
    return QdqReport(precision=kind, unquantized=reason)


def with_shortened(samples: Sequence[Mapping[str, np.ndarray]], *, every: int) -> list[Mapping[str, np.ndarray]]:
    """Return the samples, with a shortened copy after every sample whose number is a multiple of `every`.

    A shortened copy has the first few tokens and the last token of its sample.

    In a text of few tokens some channels are many times as large as in any longer text, and short texts are rare among
    samples. When all-MiniLM-L6-v2 was calibrated without shortened copies, its cosines were lowest for the texts "No."
    and "Great!". A sample that is no text, is padded, or is already short gets no shortened copy.
    """
    import numpy as np

    extended: list[Mapping[str, np.ndarray]] = []
    lengths = 0
    for number, sample in enumerate(samples):
        extended.append(sample)
        length = _SHORT_LENGTHS[lengths % len(_SHORT_LENGTHS)]
        if number % every == every - 1 and _can_be_cut(sample, length):
            extended.append(
                {
                    name: np.concatenate([array[:, : length + 1], array[:, -1:]], axis=1)
                    for name, array in sample.items()
                }
            )
            lengths += 1
    return extended


def _can_be_cut(sample: Mapping[str, np.ndarray], length: int) -> bool:
    """Whether a sample is an unpadded text with more than `length` tokens between its first token and its last."""
    ids = sample.get("input_ids")
    if ids is None or ids.ndim != 2 or ids.shape[1] <= length + 2:  # noqa: PLR2004  [batch, sequence]; its frame
        return False
    mask = sample.get("attention_mask")
    return (mask is None or bool(mask.all())) and all(array.shape == ids.shape for array in sample.values())
