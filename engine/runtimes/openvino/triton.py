"""How Triton's OpenVINO backend serves a built model."""

# Sources: README and src/openvino.cc of triton-inference-server/openvino_backend. With a max_batch_size, the backend
# fixes the batch of the model to it, and pads or refuses smaller batches.

from __future__ import annotations

from pathlib import Path

from engine.runtimes.backends import Backend
from engine.runtimes.execution import Execution
from engine.runtimes.openvino import compiled, ir
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
        joined=False,
        parameters=compiled.LATENCY,
    )
