"""Activation scaling: inputs of linear layers are changed to suit the one int8 scale that ONNX Runtime gives them."""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path
from typing import TYPE_CHECKING

from engine.kit.onnx import past
from engine.kit.quantization.dynamic import channel_smoothing, layer_inputs, per_token_scaling
from engine.kit.quantization.report import ActivationScaling

if TYPE_CHECKING:
    import onnx_ir as ir


def apply(model: ir.Model, fit: Collection[str], scratch: Path) -> ActivationScaling:
    """Scale the inputs of the MatMul and Attention nodes named in `fit`, which have stored weights; `model` is changed.

    Until the model is quantized, the scaling of its activations does not change its outputs. ONNX Runtime's CPU kernels
    give an int8 activation one scale, which divides the range from its smallest value to its largest into 255 equal
    intervals. A single large value makes the 255 intervals of an int8 activation wide, and all smaller values less
    exact.

    - The output of a normalization has rows of similar size and channels of very different sizes. The weights of the
      model decide how large each channel of a normalization's output is, so the channels are smoothed
      (`channel_smoothing`).
    - The input of a layer without a normalization in front differs in size from token to token, so each token gets its
      own scale (`per_token_scaling`), which needs no calibration. The output of a normalization gets a scale per token
      only where its channels cannot be measured on random tokens, and never in a model with a past, because a model
      with a past mostly reads one token at a time.
    - The input of the operator Attention gets no scale per token, because Attention adds its bias before its product
      could be multiplied by the scale. The output of attention needs no scale per token, because attention averages
      values, so no value stands out.

    Every node must have a unique name. The same model gives the same bytes.
    """
    inputs = layer_inputs.find(model, fit)
    measured = channel_smoothing.smooth(model, [each for each in inputs if each.normalized], scratch)
    mostly_one_token = any(past.carries(value.name) for value in model.graph.inputs)
    per_token = [
        each
        for each in inputs
        if each.name not in measured
        and all(node.op_type == "MatMul" for node in each.nodes)
        and not each.averaged
        and not (each.normalized and mostly_one_token)
    ]
    per_token_scaling.scale(model, per_token)
    smoothed = sum(measured.values())
    print(f"activations scaled before rounding: {smoothed} tensors smoothed, {len(per_token)} with a scale per token")
    return ActivationScaling(smoothed=smoothed, by_row=len(per_token))
