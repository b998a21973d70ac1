"""Activation scaling: how the inputs of linear layers are rounded to 8 bits, so that no row depends on another row."""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path
from typing import TYPE_CHECKING

from engine.kit.onnx import past
from engine.kit.quantization.dynamic import channel_smoothing, layer_inputs
from engine.kit.quantization.dynamic.channel_smoothing import Measured
from engine.kit.quantization.dynamic.integer_layers import Rounding
from engine.kit.quantization.dynamic.layer_inputs import LayerInput
from engine.kit.quantization.report import ActivationScaling

if TYPE_CHECKING:
    import onnx_ir as ir


def apply(model: ir.Model, fit: Collection[str], scratch: Path) -> tuple[ActivationScaling, list[Rounding]]:
    """Smooth the inputs of the MatMul and Attention nodes named in `fit`, and choose how each input is rounded.

    The nodes have stored weights. `model` is changed, but its outputs are not, until it is quantized. ONNX Runtime's
    own dynamic quantization gives a tensor one scale, from the smallest to the largest value of all of its rows. A
    single large value then makes all rows of a batch less exact, and an answer depends on what shares its batch.

    - The output of a normalization has rows of similar size and channels of very different sizes. The weights of the
      model decide how large each channel of a normalization's output is, so the channels are smoothed
      (`channel_smoothing`), and all inputs share a range that is measured ahead of time.
    - The values of some operators, such as Tanh, have a known range.
    - Any other input differs in size from row to row, so each row gets its own scale, which needs no measurement.
    - ONNX Runtime gives the whole tensor a scale where neither works: for the fused operator Attention, which adds its
      bias before its product could be multiplied by scales of rows, and behind normalizations and attention of a model
      with a past, which mostly reads one token at a time.

    Every node must have a unique name. The same model gives the same bytes.
    """
    inputs = layer_inputs.find(model, fit)
    measured = channel_smoothing.smooth(model, [each for each in inputs if each.normalized], scratch)
    mostly_one_token = any(past.carries(value.name) for value in model.graph.inputs)
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
