"""How Triton's OpenVINO backend serves a built model."""

# Source: README of triton-inference-server/openvino_backend.

from __future__ import annotations

from pathlib import Path

from engine.runtimes.backends import Backend
from engine.runtimes.execution import Execution
from engine.runtimes.openvino import ir
from engine.runtimes.served import Served


def served(directory: Path, execution: Execution, scratch: Path) -> Served:
    """Return the properties of an IR that Triton's OpenVINO backend needs to serve the model."""
    del execution, scratch
    model = ir.read(directory / ir.MODEL)
    return Served(
        Backend.OPENVINO,
        ir.described(model, model.inputs),
        ir.described(model, model.outputs),
        ir.FILES,
    )
