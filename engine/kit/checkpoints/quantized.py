"""Quantized: checkpoints whose weights are already in fewer bits, such as those of GPTQ, AWQ and bitsandbytes."""

from __future__ import annotations

from pathlib import Path

from engine.errors import StepError
from engine.kit.checkpoints import checkpoint as checkpoints


def refuse(checkpoint: Path) -> None:
    """Raise StepError where config.json says that the weights are quantized: a recipe quantizes weights in full."""
    settings = checkpoints.config(checkpoint).get("quantization_config")
    if isinstance(settings, dict):
        method = settings.get("quant_method")
        raise StepError(
            "the weights of the checkpoint are already quantized" + (f" ({method})" if method else ""),
            ["config.json has quantization_config"],
            "name the checkpoint that it was quantized from as `source`, and let the recipe's `precision` quantize it",
        )
