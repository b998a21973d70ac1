"""Graphs: what a package of one Python model has on a GPU beside what it has on a CPU."""

# On the GPU its session.py (runtimes/onnxruntime/in_python_cuda.py) replays a CUDA graph for each profile of one size,
# and pads requests to the shape of the graph. A model whose rows may not be joined, or whose texts may not be padded,
# has no such package: see splitter.py.

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from engine.kit.inputs import tokenizer as tokenizers
from engine.kit.triton import served
from engine.kit.triton.serving import Serving
from engine.runtimes import fixed_shapes
from engine.runtimes.served import Served

if TYPE_CHECKING:
    from engine.kit.onnx.onnx_files import Input
    from engine.runtimes.fixed_shapes import AxesOfOutputs


def files() -> dict[str, bytes]:
    """Return the files beside session.py: the model.py that knows the GPU of its instance, and routing.py."""
    return {
        "model.py": served.code(served.ON_GPU),
        "instance.py": served.code(served.MODEL),
        "routing.py": fixed_shapes.code(),
    }


def routing(serving: Serving, model: Served, checkpoint: Path) -> Mapping[str, Any] | None:
    """Return the facts of `Routing` by which requests are padded to a profile; None where no profile has one size.

    A request goes to the smallest profile that holds it: on a GPU a padded request that replays a graph costs less than
    the launches of one that does not. Raises StepError for profiles that do not suit the model's inputs.
    """
    facts = fixed_shapes.routing(
        model.inputs,
        serving.profiles,
        tokenizers.load(checkpoint),
        outputs=tuple(model.outputs),
        axes_of_outputs=lambda rows, tokens: _by_name(model.outputs, rows, tokens),
    )
    return None if facts is None else {**facts, "free": False}


def _by_name(outputs: Mapping[str, Input], rows: str | None, tokens: str | None) -> AxesOfOutputs | None:
    """Return for each axis of each output whether it is the axis of rows or of tokens, by the names in the graph.

    A first axis without a name is that of rows. The result is None where another axis of any size is not known.
    """
    known: dict[str, list[str | None]] = {}
    for name, output in outputs.items():
        shape = [rows if place == 0 and axis == f"{name}_0" else axis for place, axis in enumerate(output.shape)]
        if not output.ranked or any(isinstance(axis, str) and axis not in {rows, tokens} for axis in shape):
            return None
        known[name] = [axis if isinstance(axis, str) else None for axis in shape]
    return known
