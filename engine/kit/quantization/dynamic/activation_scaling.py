"""Activation scaling: how inputs of linear layers are smoothed and rounded, so that no row depends on another row."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

from engine.errors import StepError
from engine.kit.accuracy import equivalence
from engine.kit.inputs import index_ranges, token_rows
from engine.kit.onnx import graphs, ir_models, onnx_files, surgery
from engine.kit.quantization import activation_ranges
from engine.kit.quantization.activation_ranges import Observation
from engine.kit.quantization.dynamic import layer_inputs
from engine.kit.quantization.dynamic.integer_layers import Rounding
from engine.kit.quantization.dynamic.layer_inputs import LayerInput
from engine.kit.quantization.report import ActivationScaling
from engine.kit.quantization.trials import Trials
from engine.text import reasons

if TYPE_CHECKING:
    import numpy as np
    import onnx
    import onnx_ir as ir

_ALPHAS = (0.5, 0.65, 0.8)
"""The strengths of `activation_ranges.factors` that are tried.

A larger smoothing strength is better for channels that are large on random tokens, and worse for channels that are
large only on real texts.
"""
_WORTH = 0.5
"""The share of the rounding error that smoothing may leave and still be worth the node that smoothing adds."""
_LENGTHS = (8, 32)
"""The numbers of tokens in the random inputs on which channels are measured.

The smoothing factors must suit inputs of each length.
"""
_COLUMNS = 512
"""Upper limit of the number of a weight's output channels on which quantization errors are measured."""
_STEPS = 127
"""The largest integer of a symmetric range in 8 bits."""
_MARGIN = 1.1
"""The range of an activation as a multiple of its largest value on random tokens.

Texts have values beyond those of random tokens, and values beyond the range are clipped. A larger range makes all other
values less exact. On all-MiniLM-L6-v2, 1.0 to 1.3 hardly differ; 1.6 is clearly worse.
"""
_UNEVEN = 16.0
"""How many times the rounding error with a range per row the error with one range for all rows may be.

Where rows have similar sizes, as behind most normalizations, one range costs one or two bits: 4 to 16 times the error.
"""


def apply(model: ir.Model, fit: Collection[str], scratch: Path) -> tuple[ActivationScaling, list[Rounding]]:
    """Smooth the inputs of the MatMul and Attention nodes named in `fit`, and choose how each input is rounded.

    The nodes have stored weights. `model` is changed, but its outputs are not, until it is quantized. ONNX Runtime's
    own dynamic quantization gives a tensor one scale, from the smallest to the largest value of all of its rows. A
    single large value then makes all rows of a batch less exact, and an answer depends on what shares its batch.

    - The output of a normalization has rows of similar size and channels of very different sizes. The weights of the
      model decide how large each channel of a normalization's output is, so the channels are smoothed
      (`smooth`), and all inputs share a range that is measured ahead of time.
    - The values of some operators, such as Tanh, have a known range.
    - Any other input differs in size from row to row, so each row gets its own scale, which needs no measurement.
    - ONNX Runtime gives the whole tensor a scale where neither works: for the fused operator Attention, which adds its
      bias before its product could be multiplied by scales of rows, and behind normalizations and attention of a model
      with a past, which mostly reads one token at a time.

    Every node must have a unique name. The same model gives the same bytes.
    """
    inputs = layer_inputs.find(model, fit)
    measured = smooth(model, [each for each in inputs if each.normalized], scratch)
    mostly_one_token = any(graphs.carries_past(value.name) for value in model.graph.inputs)
    every = [rounding(each, measured.get(each.name), mostly_one_token=mostly_one_token) for each in inputs]
    roundings = [each for each in every if each is not None]
    smoothed = sum(each.smoothed for each in measured.values())
    fixed = sum(each.largest is not None for each in roundings)
    by_row = len(roundings) - fixed
    print(f"rounding of activations: {smoothed} smoothed, {fixed} with a fixed range, {by_row} with a scale per row")
    return ActivationScaling(smoothed=smoothed, by_row=by_row, fixed=fixed), roundings


def rounding(each: LayerInput, measured: Measured | None, *, mostly_one_token: bool) -> Rounding | None:
    """Return how an activation is rounded; None where ONNX Runtime gives the whole tensor a scale at each run."""
    names = tuple(node.name or "" for node in each.nodes)
    if each.bounded:
        return Rounding(names, largest=1.0)
    if measured is not None and measured.largest is not None:
        return Rounding(names, largest=measured.largest)
    if any(node.op_type != "MatMul" for node in each.nodes):
        return None
    if mostly_one_token and (each.normalized or each.averaged):
        return None
    return Rounding(names, least=each.least)


@dataclass(frozen=True)
class Measured:
    """What was measured for an activation: whether it was smoothed, and the range that suits all of its rows.

    The range is from -`largest` to `largest`; None where the rows differ too much in size for one range.
    """

    smoothed: bool
    largest: float | None


def smooth(model: ir.Model, normalized: Sequence[LayerInput], scratch: Path) -> dict[str, Measured]:
    """Smooth the inputs of linear layers where smoothing lowers the rounding error; `model` is changed.

    Returns what was measured, by the name of the tensor before smoothing. Seeded random tokens are enough to measure
    the channels of a normalization's output, because the model decides their sizes, hardly the text. A model is
    smoothed only if all of its inputs are tokens. An activation is not smoothed where a further node reads one of its
    weights, because the weight would have to be stored twice.
    """
    inputs = [each for each in normalized if all(len(weight.uses()) == 1 for weight in each.weights)]
    observations = _observations(model, inputs, scratch) if inputs else {}
    measured = {}
    for each in inputs:
        if each.name not in observations:
            continue
        halves = observations[each.name]
        factors, largest = _chosen(halves, [surgery.numbers(weight) for weight in each.weights])
        measured[each.name] = Measured(smoothed=factors is not None, largest=largest)
        if factors is not None:
            _smooth(model.graph, each, factors)
    return measured


def _smooth(graph: ir.Graph, layer_input: LayerInput, factors: np.ndarray) -> None:
    """Divide the channels of an activation by factors, and multiply the rows of its weights by them."""
    name = layer_input.name
    for weight in layer_input.weights:
        surgery.restore(weight, surgery.numbers(weight) * factors[:, None])
    inverse = surgery.store(graph, f"{name}_factors", 1 / factors)
    layer_input.exchange(surgery.node("Mul", [layer_input.value, inverse], f"{name}_smoothed", f"{name}_Mul"))


def _observations(
    model: ir.Model, inputs: Sequence[LayerInput], scratch: Path
) -> dict[str, tuple[Observation, Observation]]:
    """Return two observations of each tensor, on two halves of the inputs.

    If the model has inputs that are no tokens, or cannot run on random tokens, the returned mapping is empty.
    """
    message = ir_models.proto(model)
    if not token_rows.are_tokens(onnx_files.inputs(message)):
        return {}
    with TemporaryDirectory(dir=scratch) as folder:
        try:
            # `observe` keeps even and odd samples apart, so the two lengths take turns.
            by_length = zip(*(equivalence.trials(message, length=length) for length in _LENGTHS), strict=True)
            samples = [sample for pair in by_length for _, sample in pair]
            trials = Trials.of(model, Path(folder) / "model")
            names = [each.name for each in inputs]
            return activation_ranges.observe(trials, names, [*samples, *_special_tokens(message, samples[-1])])
        except StepError as error:
            print(f"the model could not run on random tokens: {reasons.of_error(error)}")
            return {}


def _special_tokens(model: onnx.ModelProto, sample: Mapping[str, np.ndarray]) -> Iterator[dict[str, np.ndarray]]:
    """Yield samples with the first and the last tokens of the vocabulary, which random tokens hardly ever are.

    Vocabularies begin or end with the tokens that stand around each text, such as [CLS], and these have the largest
    activations of some models.
    """
    import numpy as np

    ids = sample["input_ids"]
    vocabulary = index_ranges.of(model).get("input_ids")
    if vocabulary is None:
        return
    for start in (0, ids.size, -ids.size, -2 * ids.size):
        tokens = np.arange(start, start + ids.size).reshape(ids.shape) % vocabulary
        yield {**sample, "input_ids": tokens.astype(ids.dtype)}


def _chosen(
    halves: tuple[Observation, Observation], weights: Sequence[np.ndarray]
) -> tuple[np.ndarray | None, float | None]:
    """Return the divisors of the channels with the least rounding error, and the range of the smoothed activation.

    The divisors are None where smoothing gains too little, the range where one range for all rows costs too much.
    """
    import numpy as np

    weight = np.concatenate(weights, axis=1)
    sampled = weight[:, :: -(-weight.shape[1] // _COLUMNS)]
    errors = dict.fromkeys((None, *_ALPHAS), 0.0)
    by_row = dict.fromkeys(errors, 0.0)
    for fitted, unseen in (halves, halves[::-1]):
        for alpha in errors:
            factors = None if alpha is None else activation_ranges.smoothing_factors(fitted.largest, weight, alpha)
            largest = _largest(fitted.largest, factors)
            rows, grown = unseen.rows, sampled
            if factors is not None:
                rows, grown = rows / factors, grown * factors[:, None]
            errors[alpha] += _error(rows, grown, np.float32(largest))
            by_row[alpha] += _error(rows, grown, np.abs(rows).max(axis=1, keepdims=True))
    best: float | None = min(_ALPHAS, key=lambda alpha: errors[alpha])
    if errors[best] > _WORTH * errors[None]:
        best = None
    every = np.maximum(halves[0].largest, halves[1].largest)
    factors = None if best is None else activation_ranges.smoothing_factors(every, weight, best)
    even = errors[best] <= _UNEVEN * by_row[best]
    return factors, _largest(every, factors) if even else None


def _largest(largest: np.ndarray, factors: np.ndarray | None) -> float:
    """Return the range of an activation whose channels are divided by factors."""
    most = float((largest if factors is None else largest / factors).max(initial=0))
    return most * _MARGIN or 1.0


def _error(rows: np.ndarray, weight: np.ndarray, largest: np.ndarray | np.float32) -> float:
    """Return the mean square error of the products of rows and a weight with the given range, or a range a row."""
    import numpy as np

    step = np.maximum(largest, np.float32(1e-30)) / _STEPS
    rounded = np.clip(np.rint(rows / step), -_STEPS, _STEPS) * step
    return float(np.square((rounded - rows) @ weight).mean())
