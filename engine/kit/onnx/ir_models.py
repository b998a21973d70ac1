"""IR models: a model as a graph of nodes and values (`onnx_ir`), read, written, and changed by passes."""

# onnx_ir knows the producer and all uses of a value, also those in bodies, so passes need no maps of names.

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Concatenate, ParamSpec, TypeVar

from engine.errors import StepError
from engine.kit.onnx import mapped_weights, onnx_files
from engine.text import reasons

if TYPE_CHECKING:
    import onnx
    import onnx_ir as ir

P = ParamSpec("P")
R = TypeVar("R")

TOOLS = (*onnx_files.TOOLS, "onnx-ir", "sympy")
"""The distributions that change and write a model: onnx_ir reads the names of axes with sympy."""


def load(directory: Path) -> ir.Model:
    """Return the model in a directory with its large weights mapped. Raises StepError as `load_mapped` does."""
    return of(onnx_files.load_mapped(directory))


def of(model: onnx.ModelProto) -> ir.Model:
    """Return the model as a graph of values; mapped weights stay mapped, and other weights are shared with `model`.

    Sparse weights become dense, because onnx_ir would drop them. Nodes that stand before their inputs are moved.
    Raises StepError for a graph with a circle, or with a tensor that two nodes give.
    """
    import onnx_ir as ir

    for graph in onnx_files.graphs(model.graph):
        graph.initializer.extend(map(_dense, graph.sparse_initializer))
        del graph.sparse_initializer[:]
    try:
        result: ir.Model = ir.from_proto(model)
        result.graph.sort()
    except Exception as error:  # SerdeError for a tensor that two nodes give, ValueError for a circle, and others
        raise StepError(
            "The graph of the model cannot be changed",
            reasons.facts(error),
            "export the model again, or repair it with the tool that made it",
        ) from error
    return result


def proto(model: ir.Model) -> onnx.ModelProto:
    """Return the model as a message; mapped weights stay mapped. The same model gives the same message."""
    import onnx_ir as ir

    message = ir.to_proto(model)
    for entry in message.opset_import:
        if not entry.domain:
            entry.ClearField("domain")  # as other writers leave out ONNX's own domain
    for graph in onnx_files.graphs(message.graph):  # a stored tensor has its type and shape in itself
        onnx_files.remove_named(graph.value_info, onnx_files.initializers(graph))
    return message


def save(model: ir.Model, directory: Path) -> None:
    """Write the model as `directory/model.onnx`, as `onnx_files.save` does; the same model gives the same bytes."""
    onnx_files.save(proto(model), directory)


def _dense(tensor: onnx.SparseTensorProto) -> onnx.TensorProto:
    """Return a sparse tensor with all of its numbers; its indices count elements, or name a place on each axis."""
    import numpy as np
    from onnx import numpy_helper

    values, places = numpy_helper.to_array(tensor.values), numpy_helper.to_array(tensor.indices)
    dense = np.zeros(tuple(tensor.dims), values.dtype)
    where = np.unravel_index(places, dense.shape) if places.ndim == 1 else tuple(places.T)
    dense[where] = values
    return mapped_weights.tensor_of(dense, tensor.values.name)


class Pipeline:
    """A model, and the names of the passes that have changed it.

    A pass is a function whose first parameter is the model that it changes. The name of a pass consists of the names of
    its module and of its function, for example `linear_layers.split`.
    """

    def __init__(self, model: ir.Model) -> None:
        self.model = model
        self.passes: list[str] = []

    def run(self, change: Callable[Concatenate[ir.Model, P], R], *args: P.args, **kwargs: P.kwargs) -> R:
        """Run a pass, and return what its function returns. Raises StepError where the pass fails."""
        with self._pass(f"{change.__module__.rpartition('.')[2]}.{change.__name__}"):
            return change(self.model, *args, **kwargs)

    def run_tool(self, name: str, change: Callable[[onnx.ModelProto], onnx.ModelProto]) -> None:
        """Run as a pass another package's tool, which takes a message and returns the changed message."""
        with self._pass(name):
            self.model = of(change(proto(self.model)))

    @contextlib.contextmanager
    def _pass(self, name: str) -> Iterator[None]:
        """Note a pass as run; add the names of the pass and of the passes before it to the facts of an error."""
        place = [f"in the pass {name}", f"passes before it: {', '.join(self.passes) or 'none'}"]
        try:
            yield
        except StepError as error:
            raise StepError(error.what, [*error.facts, *place], error.hint) from error
        except Exception as error:
            raise StepError(
                "The graph of the model could not be changed",
                [*reasons.facts(error), *place],
                "please report the model together with this message",
            ) from error
        self.passes.append(name)
