"""Runs an ONNX graph in TensorRT-RTX with all of its tensors as outputs, for Polygraphy's comparison of layers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from engine.runtimes.tensorrt import layers


def on_device(execution: object) -> Callable[..., Any]:
    """Return the function that makes Polygraphy's runner for the GPU of this machine."""
    return layers.on_device(execution, rtx=True)
