"""OpenVINO int8 by NNCF: with its defaults, or tuned by hand for BERT.

By hand: each row in front of the output layers of attention and of the feed-forward part is divided by its largest
value, and the product multiplied by it; the other activations are smoothed with a strength of 0.7.
"""

from __future__ import annotations

import sys
from pathlib import Path

import nncf
import openvino
import torch
import transformers
from answer import answered, request, samples
from nncf.quantization.advanced_parameters import AdvancedQuantizationParameters, AdvancedSmoothQuantParameters

SMOOTHING = 0.7


class Scaled(torch.nn.Module):
    """A linear layer whose input rows are divided by their largest value."""

    def __init__(self, layer: torch.nn.Linear, *, positive: bool, floor: float) -> None:
        super().__init__()
        self.weight, self.bias = torch.nn.Parameter(layer.weight.T.contiguous()), layer.bias
        self.positive, self.floor = positive, floor

    def forward(self, rows: torch.Tensor) -> torch.Tensor:
        """Return the layer's output."""
        sizes = (rows if self.positive else rows.abs()).amax(dim=-1, keepdim=True).clamp_min(self.floor)
        return (rows / sizes) @ self.weight * sizes + self.bias


def tuned(folder: Path, path: Path) -> None:
    """Export the BERT of a folder with scaled rows."""
    model = transformers.AutoModel.from_pretrained(folder, attn_implementation="eager").eval()
    for layer in model.encoder.layer:
        layer.attention.output.dense = Scaled(layer.attention.output.dense, positive=False, floor=0.01)
        layer.output.dense = Scaled(layer.output.dense, positive=True, floor=0.17)
    ids = torch.randint(5, 1000, (2, 12))
    inputs = {"input_ids": ids, "attention_mask": torch.ones_like(ids), "token_type_ids": torch.zeros_like(ids)}
    batch, sequence = torch.export.Dim("batch", min=1, max=512), torch.export.Dim("sequence", min=1, max=512)
    axes = {name: {0: batch, 1: sequence} for name in inputs}
    exported = torch.onnx.export(
        model, (), kwargs=inputs, dynamic_shapes=axes, dynamo=True, output_names=["last_hidden_state"], opset_version=20
    )
    exported.save(path)


def main() -> None:
    """Quantize the exported model, or the model tuned by hand."""
    given, by_hand = request(), sys.argv[2] == "tuned"
    out = Path(given["out"])
    source = Path(given["exported"])
    if by_hand:
        source = out / "scaled.onnx"
        tuned(Path(given["checkpoint"]), source)
    model = openvino.Core().read_model(source)
    names = [value.any_name for value in model.inputs]
    rows = samples(given, names)
    smoothing = AdvancedSmoothQuantParameters(matmul=SMOOTHING)
    advanced = AdvancedQuantizationParameters(smooth_quant_alphas=smoothing) if by_hand else None
    quantized = nncf.quantize(
        model,
        nncf.Dataset(rows),
        subset_size=len(rows),
        model_type=nncf.ModelType.TRANSFORMER if given["kind"] == "text" else None,
        advanced_parameters=advanced,
    )
    openvino.save_model(quantized, out / "model.xml", compress_to_fp16=False)
    answered(given, "openvino", out / "model.xml", ["openvino", "nncf"])


main()
