"""How Triton's OpenVINO backend serves a built model."""

# Sources: README and src/openvino.cc of triton-inference-server/openvino_backend. With a max_batch_size, the backend
# fixes the batch of the model to it, and pads or refuses smaller batches.

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from engine.runtimes import fixed_shapes
from engine.runtimes.backends import Backend
from engine.runtimes.execution import Execution
from engine.runtimes.openvino import compiled, ir
from engine.runtimes.served import Router, Served

if TYPE_CHECKING:
    import openvino


def served(directory: Path, execution: Execution, scratch: Path) -> Served:
    """Return the properties of an IR that Triton's OpenVINO backend needs to serve the model.

    A model for several shapes becomes several models, one for each shape, behind a router. A model with a single fixed
    shape and no free shapes is served in this shape.
    """
    del execution
    model = ir.read(directory / ir.MODEL)
    routing = ir.routing(model)
    if routing is None:
        return _served(model)
    named = {"x".join(map(str, fixed.values())): index for index, fixed in enumerate(routing.fixed)}
    models = {name: _fixed(model, routing.shapes(index), scratch / name) for name, index in named.items()}
    if routing.free:
        models["free"] = _served(model)
    if len(models) == 1:
        return next(iter(models.values()))
    router = Router(fixed_shapes.code(), routing.facts, models)
    return _served(model)._replace(backend=Backend.PYTHON, files=(), parameters={}, router=router)


def _fixed(model: openvino.Model, shapes: Mapping[str, Sequence[int]], folder: Path) -> Served:
    """Write the IR of a model in fixed shapes into a folder; return how it is served."""
    fixed = ir.reshaped(model, shapes)
    folder.mkdir(parents=True)
    ir.save(fixed, folder, {**ir.described(fixed, fixed.inputs), **ir.described(fixed, fixed.outputs)})
    return _served(fixed)._replace(folder=folder)


def _served(model: openvino.Model) -> Served:
    """Return the properties of one IR."""
    return Served(
        Backend.OPENVINO,
        ir.described(model, model.inputs),
        ir.described(model, model.outputs),
        ir.FILES,
        joined=False,
        parameters=compiled.LATENCY,
    )
