"""Activation scaling: the inputs of linear layers fitted to the single int8 scale that ONNX Runtime gives a tensor."""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path
from typing import TYPE_CHECKING

from engine.kit.onnx import graphs
from engine.kit.quantization.dynamic import channel_smoothing, layer_inputs, per_token_scaling
from engine.kit.quantization.report import ActivationScaling

if TYPE_CHECKING:
    import onnx


def apply(model: onnx.ModelProto, fit: Collection[str], scratch: Path) -> ActivationScaling:
    """Scale the inputs of the nodes named in `fit`, MatMul and Attention with stored weights; `model` is changed.

    The changed model computes the same outputs. ONNX Runtime's CPU kernels give an int8 activation one scale: 255
    steps from the smallest value to the largest. A single large value makes these steps coarse for all other values.

    - The output of a normalization has rows of similar size and channels of very different sizes. The weights of the
      model decide these sizes, so the channels are smoothed (`channel_smoothing`).
    - Every other input differs in size from token to token, so each token gets its own scale (`per_token_scaling`),
      which needs no calibration. A normalized input also gets a scale per token where random tokens cannot be run
      through the model. A model with a past is the exception: it mostly reads one token at a time.
    - Attention gets no scale per token, because Attention adds its bias before a scale could be multiplied back. The
      output of attention needs none either: attention averages values, so no value stands out.

    Nodes must have unique names. The same model gives the same bytes.
    """
    inputs = layer_inputs.find(model, fit)
    measured = channel_smoothing.smooth(model, [each for each in inputs if each.normalized], scratch)
    mostly_one_token = graphs.has_past(model)
    per_token = [
        each
        for each in inputs
        if each.tensor not in measured
        and set(each.operators) == {"MatMul"}
        and not each.averaged
        and not (each.normalized and mostly_one_token)
    ]
    per_token_scaling.scale(model, per_token)
    smoothed = sum(measured.values())
    print(f"activations scaled before rounding: {smoothed} tensors smoothed, {len(per_token)} with a scale per token")
    return ActivationScaling(smoothed=smoothed, by_row=len(per_token))
