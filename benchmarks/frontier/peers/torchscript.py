"""TorchScript: the original model, traced and frozen, in `fp32` or with linear layers in `int8` by torch.ao."""

from __future__ import annotations

import sys
from pathlib import Path

import torch
import transformers
from answer import answered, request

given, kind = request(), sys.argv[2]
model = getattr(transformers, given["auto"]).from_pretrained(given["checkpoint"]).eval()
if kind == "int8":
    model = torch.ao.quantization.quantize_dynamic(model, {torch.nn.Linear}, dtype=torch.qint8)


class Positional(torch.nn.Module):
    """The model with two positional inputs and one output."""

    def __init__(self) -> None:
        super().__init__()
        self.model = model

    def forward(self, input_ids: torch.Tensor, attention_mask: torch.Tensor) -> torch.Tensor:
        """Return the model's main output."""
        return getattr(self.model(input_ids=input_ids, attention_mask=attention_mask), given["output"])


ids = torch.randint(5, 1000, (2, 12))
mask = torch.ones_like(ids)
mask[1, 7:] = 0
with torch.inference_mode():
    traced = torch.jit.freeze(torch.jit.trace(Positional().eval(), (ids, mask)))
path = Path(given["out"]) / "model.pt"
traced.save(str(path))
options = {"inputs": ["input_ids", "attention_mask"], "output": given["output"]}
answered(given, "torchscript", path, ["torch", "transformers"], options)
