"""Ranges: the type of every tensor of a graph, and the tensor's largest absolute value on samples."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from engine.kit.onnx import ir_models, shapes, surgery
from engine.kit.quantization import trials
from engine.runtimes.onnxruntime import session as ort

if TYPE_CHECKING:
    import numpy as np
    import onnx_ir as ir

    Inputs = Mapping[str, np.ndarray]

FLOAT = "tensor(float)"

_PREFIX = "measured"


@dataclass(frozen=True)
class Ranges:
    """The type of each tensor, in ONNX Runtime's words, and its largest magnitude on samples.

    `largest` lists float32 tensors, weights among them; a tensor with a value that is not finite has infinity.
    """

    types: Mapping[str, str]
    largest: Mapping[str, float]

    def single(self, name: str) -> bool:
        """Whether a tensor holds float32."""
        return self.types.get(name) == FLOAT


def measure(model: ir.Model, samples: Sequence[Inputs], scratch: Path) -> Ranges:
    """Run a float32 model on samples without optimizations, and measure every tensor of its main graph.

    ONNX Runtime returns one number per measured tensor, however large the tensor is. Raises StepError where ONNX
    Runtime cannot run the model.
    """
    types = tensor_types(model, scratch)
    inputs = [value.name for value in model.graph.inputs if value.name and not value.is_initializer()]
    computed = [name for node in model.graph for name in surgery.output_names(node) if name]
    watched = [name for name in (*inputs, *computed) if types.get(name) == FLOAT]
    largest = _stored(model)
    session = trials.opened(_watching(model, watched), scratch)
    for sample in samples:
        numbers = ort.run(session, sample)
        for number, name in enumerate(watched):
            most = float(numbers[f"{_PREFIX}_most_{number}"])  # -inf for an empty tensor
            largest[name] = max(largest.get(name, 0.0), math.inf if math.isnan(most) else most)
    return Ranges(types, largest)


def tensor_types(model: ir.Model, scratch: Path) -> dict[str, str]:
    """Return the type of every tensor of the main graph, inferred and named by ONNX Runtime, such as `tensor(float)`.

    ONNX Runtime infers the types from a copy of the model without large weights; it knows its own operators, which
    ONNX's shape inference does not know. Raises StepError where ONNX Runtime
    cannot open the copy of the model.
    """
    import onnx

    message = ir_models.proto(model)
    skeleton = shapes.skeleton(message)
    del skeleton.graph.output[:]
    names = dict.fromkeys(name for node in message.graph.node for name in node.output if name)
    skeleton.graph.output.extend(onnx.ValueInfoProto(name=name) for name in names)
    session = ort.unoptimized_graph(skeleton, scratch)
    types = {value.name: value.type for value in (*session.get_inputs(), *session.get_outputs())}
    return types | {tensor.name: _type(tensor.data_type) for tensor in message.graph.initializer}


def _watching(model: ir.Model, names: Sequence[str]) -> ir.Model:
    copy = model.clone()
    graph = copy.graph
    last: dict[ir.Node, ir.Node] = {}
    graph.outputs.clear()
    values = surgery.values(graph)
    first = graph[0]
    for number, name in enumerate(names):
        nodes = _watchers(values[name], number)
        producer = values[name].producer()
        if producer is None:
            graph.insert_before(first, nodes)
        else:  # right behind the producer, so that a tensor's memory is freed early
            graph.insert_after(last.get(producer, producer), nodes)
            last[producer] = nodes[-1]
        graph.outputs.append(nodes[-1].outputs[0])
    return copy


def _watchers(value: ir.Value, number: int) -> list[ir.Node]:
    """Return the nodes that compute a value's magnitudes, and the largest magnitude."""
    size, most = (f"{_PREFIX}_{what}_{number}" for what in ("size", "most"))
    magnitudes = surgery.node("Abs", [value], size, size)
    return [magnitudes, surgery.node("ReduceMax", magnitudes.outputs, most, most, keepdims=0)]


def _stored(model: ir.Model) -> dict[str, float]:
    import numpy as np
    import onnx_ir as ir

    return {
        name: float(np.abs(surgery.numbers(value)).max(initial=0))
        for name, value in model.graph.initializers.items()
        if surgery.tensor(value).dtype == ir.DataType.FLOAT
    }


def _type(number: int) -> str:
    import onnx

    return f"tensor({onnx.TensorProto.DataType.Name(number).lower()})"
