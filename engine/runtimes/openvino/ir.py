"""IR: models in OpenVINO's intermediate representation, the two files `model.xml` and `model.bin`."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from engine.errors import StepError
from engine.kit.onnx import onnx_files
from engine.kit.onnx.onnx_files import Input
from engine.runtimes.routing import Routing
from engine.text import reasons

if TYPE_CHECKING:
    import openvino

    from engine.runtimes.fixed_shapes import AxesOfOutputs

MODEL, WEIGHTS = "model.xml", "model.bin"
FILES = (MODEL, WEIGHTS)
_NUMBERED = re.compile(r"(_\d+)+$")
_AXES = ["recipe", "axes"]
"""The place of the axes' names in the runtime information of an IR: OpenVINO itself does not name axes."""
_ROUTING = ["recipe", "routing"]
"""The place of the facts of `routing.Routing` in the runtime information of an IR."""
_BOUNDARY = frozenset({"Parameter", "Result"})
_PROBES = ((2, 5), (3, 7))
"""Two pairs of the number of rows and the number of tokens, from which the axes of an output are known."""


class UnfitModelError(StepError):
    """OpenVINO cannot read, quantize or compile a model."""


def read(path: Path) -> openvino.Model:
    """Return the model of an ONNX file or of an IR. Raises UnfitModelError for a file that OpenVINO cannot read."""
    import openvino

    try:
        return openvino.Core().read_model(path)
    except RuntimeError as error:
        raise UnfitModelError(
            f"OpenVINO cannot read {path.name}",
            reasons.facts(error),
            "use runtime: onnxruntime, which has the other operators of ONNX",
        ) from error


def of_onnx(path: Path) -> openvino.Model:
    """Return the model of an ONNX file; each input and output has the name of the ONNX file, and no other.

    OpenVINO also gives a tensor the names of tensors that it has merged with it. Raises UnfitModelError for a file that
    OpenVINO cannot read.
    """
    model, graph = read(path), onnx_files.load_graph(path.parent)
    for values, names in ((model.inputs, onnx_files.inputs(graph)), (model.outputs, onnx_files.outputs(graph))):
        for name in names:
            for value in values:
                if name in value.get_names():
                    value.get_tensor().set_names({name})
    return model


def save(
    model: openvino.Model, directory: Path, axes: Mapping[str, Input], routing: Mapping[str, Any] | None = None
) -> None:
    """Write the IR of a model, with weights in the types that they have in memory.

    `axes` are the inputs and outputs whose axes are named in the file, and `routing` are the facts of the shapes for
    which the model is compiled. The same model gives the same bytes: OpenVINO numbers new nodes by a counter of the
    process, so nodes whose names end in a number are numbered by their order in the model instead.
    """
    import openvino

    for number, node in enumerate(model.get_ordered_ops()):
        name = node.get_friendly_name()
        if node.get_type_name() not in _BOUNDARY and _NUMBERED.search(name):
            node.set_friendly_name(f"{_NUMBERED.sub('', name)}_{number}")
    shapes = {name: value.shape for name, value in axes.items()}
    model.set_rt_info(json.dumps(shapes, sort_keys=True), _AXES)
    if routing is not None:
        model.set_rt_info(json.dumps(routing, sort_keys=True), _ROUTING)
    openvino.save_model(model, directory / MODEL, compress_to_fp16=False)


def routing(model: openvino.Model) -> Routing | None:
    """Return the shapes for which a model is compiled; None for a model that is compiled for free shapes only."""
    facts = json.loads(model.get_rt_info(_ROUTING).value) if model.has_rt_info(_ROUTING) else None
    return None if facts is None else Routing(facts)


def reshaped(model: openvino.Model, shapes: Mapping[str, Sequence[int]]) -> openvino.Model:
    """Return a copy of a model for fixed shapes of its inputs. Raises StepError where the model has no such shapes."""
    fixed = model.clone()
    try:
        fixed.reshape({name: list(shape) for name, shape in shapes.items()})
    except RuntimeError as error:
        listed = [f"{name}: {list(shape)}" for name, shape in shapes.items()]
        hint = "choose a profile that the model takes"
        raise StepError("the model cannot have these shapes", [*reasons.facts(error), *listed], hint) from error
    return fixed


def computed(model: openvino.Model) -> frozenset[str]:
    """Return the names of the operators that depend on an input; OpenVINO computes all others as it compiles."""
    names: set[str] = set()
    for node in model.get_ordered_ops():
        before = (value.get_node().get_friendly_name() for value in node.input_values())
        if node.get_type_name() == "Parameter" or any(name in names for name in before):
            names.add(node.get_friendly_name())
    return frozenset(names)


def described(model: openvino.Model, values: list[openvino.Output]) -> dict[str, Input]:
    """Return inputs or outputs of a model by name, with the names of axes that the IR has; others are counted."""
    named = json.loads(model.get_rt_info(_AXES).value) if model.has_rt_info(_AXES) else {}
    inputs = {}
    for value in values:
        name = value.any_name
        axes = named.get(name, [f"{name}_{axis}" for axis in range(len(value.get_partial_shape()))])
        shape = [
            dimension.get_length() if dimension.is_static else axis
            for axis, dimension in zip(axes, value.get_partial_shape(), strict=True)
        ]
        inputs[name] = Input(name, value.get_element_type().to_dtype().name, tuple(shape))
    return inputs


def output_axes(
    model: openvino.Model, inputs: Mapping[str, Input], rows: str | None, tokens: str | None
) -> AxesOfOutputs | None:
    """Return for each axis of each output whether it is the axis of rows, that of tokens or neither (None).

    The result is None where an output has an axis whose size follows otherwise from these two, or cannot be known.
    """
    probed = []
    for sizes in _PROBES:
        known: dict[str | int | None, int] = dict(zip((rows, tokens), sizes, strict=True))
        shapes = {name: [known.get(axis, axis) for axis in value.shape] for name, value in inputs.items()}
        if any(isinstance(axis, str) for shape in shapes.values() for axis in shape):
            return None
        probe = model.clone()
        try:
            probe.reshape(shapes)
        except RuntimeError:
            return None
        probed.append({value.any_name: value.get_partial_shape() for value in probe.outputs})
    pairs: dict[tuple[int, int], str | None] = {
        (before, after): name for name, before, after in zip((rows, tokens), *_PROBES, strict=True) if name is not None
    }
    result: dict[str, list[str | None]] = {}
    for name, before in probed[0].items():
        after = probed[1][name]
        if before.is_dynamic or after.is_dynamic:
            return None
        result[name] = []
        for pair in zip(before.to_shape(), after.to_shape(), strict=True):
            if pair[0] != pair[1] and pair not in pairs:
                return None
            result[name].append(pairs.get(pair))
    return result
