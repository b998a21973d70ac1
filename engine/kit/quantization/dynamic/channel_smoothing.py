"""Channel smoothing: channels of a normalization are divided by factors, by which the next weights are multiplied."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

from engine.errors import StepError
from engine.kit.accuracy import equivalence
from engine.kit.inputs import token_rows
from engine.kit.onnx import ir_models, onnx_files, surgery
from engine.kit.quantization import activation_ranges, smoothing
from engine.kit.quantization.activation_ranges import Observation
from engine.kit.quantization.dynamic.layer_inputs import LayerInput
from engine.kit.quantization.trials import Trials
from engine.text import reasons

if TYPE_CHECKING:
    import numpy as np
    import onnx_ir as ir

_ALPHAS = (0.5, 0.65, 0.8)
"""The strengths of `smoothing.factors` that are tried.

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
_STEPS = 255
"""The number of intervals into which int8 divides the range of an activation, from its smallest value to its largest.
"""


def smooth(model: ir.Model, normalized: Sequence[LayerInput], scratch: Path) -> dict[str, bool]:
    """Smooth the inputs of linear layers where smoothing lowers the rounding error; `model` is changed.

    Returns a mapping from each measured tensor to whether the tensor was smoothed. Seeded random tokens are enough to
    measure the channels of a normalization's output, because the model decides their sizes, hardly the text. A model is
    smoothed only if all of its inputs are tokens. An activation is not smoothed where a further node reads one of its
    weights, because the weight would have to be stored twice.
    """
    inputs = [each for each in normalized if all(len(weight.uses()) == 1 for weight in each.weights)]
    observations = _observations(model, inputs, scratch) if inputs else {}
    measured = {}
    for each in inputs:
        if each.name not in observations:
            continue
        factors = _factors(observations[each.name], [surgery.numbers(weight) for weight in each.weights])
        measured[each.name] = factors is not None
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
    """Return two observations of each tensor, one for each length of random inputs.

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
            return activation_ranges.observe(trials, [each.name for each in inputs], samples)
        except StepError as error:
            print(f"the model could not run on random tokens: {reasons.of_error(error)}")
            return {}


def _factors(halves: tuple[Observation, Observation], weights: Sequence[np.ndarray]) -> np.ndarray | None:
    """Return the divisors of the channels with the least rounding error; None where smoothing gains too little."""
    import numpy as np

    weight = np.concatenate(weights, axis=1)
    sampled = weight[:, :: -(-weight.shape[1] // _COLUMNS)]
    errors = dict.fromkeys((None, *_ALPHAS), 0.0)
    for fitted, unseen in (halves, halves[::-1]):
        for alpha in errors:
            factors = None if alpha is None else smoothing.factors(fitted.largest, weight, alpha)
            errors[alpha] += _error(unseen.rows, factors, sampled)
    best = min(_ALPHAS, key=lambda alpha: errors[alpha])
    if errors[best] > _WORTH * errors[None]:
        return None
    return smoothing.factors(np.maximum(halves[0].largest, halves[1].largest), weight, best)


def _error(rows: np.ndarray, factors: np.ndarray | None, weight: np.ndarray) -> float:
    """Return the mean square error of the products of rows and a weight when all rows share one int8 scale."""
    import numpy as np

    smoothed, grown = (rows, weight) if factors is None else (rows / factors, weight * factors[:, None])
    least, largest = min(float(smoothed.min()), 0.0), max(float(smoothed.max()), 0.0)
    step = (largest - least) / _STEPS or 1.0
    return float(np.square((np.rint(smoothed / step) * step - smoothed) @ grown).mean())
