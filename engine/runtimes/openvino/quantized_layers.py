"""Quantized layers: the activations that a model rounds to 8 bits, and copies of it that leave some as they are."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection
from typing import TYPE_CHECKING

from engine.runtimes.openvino import compiled
from engine.runtimes.openvino.compiled import Calls

if TYPE_CHECKING:
    import numpy as np
    import openvino

    from engine.runtimes.openvino.compiled import Tensors

_KINDS = frozenset(
    {"Convolution", "ConvolutionBackpropData", "GroupConvolution", "GroupConvolutionBackpropData", "MatMul"}
)
_ROUNDING = "FakeQuantize"
"""The operator that rounds an activation to one of 256 values."""
_SWITCH = "recipe_switch_"
"""The beginning of the names of the inputs of `Switched` that say whether an activation is rounded."""


def find(model: openvino.Model) -> dict[str, dict[str, str]]:
    """Return the name of each operator that rounds an activation -> the layers that read it, with their kinds.

    A layer multiplies by weights, or two activations. Operators such as Concat may stand on the way to a layer.
    """
    return {str(node.get_friendly_name()): _layers(node) for node in _roundings(model)}


def counted(model: openvino.Model, left: Collection[str]) -> dict[str, int]:
    """Return the number of layers that read rounded activations only, by kind, where the roundings in `left` are."""
    read = find(model)
    floating = {layer for name in left for layer in read[name]}
    layers = {layer: kind for of_one in read.values() for layer, kind in of_one.items() if layer not in floating}
    return dict(sorted(Counter(layers.values()).items()))


def without(model: openvino.Model, left: Collection[str]) -> openvino.Model:
    """Return a copy of a model in which the activations that the operators in `left` round are as they are.

    The weights of the layers behind them stay in 8 bits, and are computed back to floating point.
    """
    copy = model.clone()
    for node in _roundings(copy):
        if node.get_friendly_name() in left:
            node.output(0).replace(node.input_value(0))
    return copy


class Switched:
    """A model whose activations are each rounded or left as they are, as every call says.

    The rounding is computed in fp32, so the model is compiled once for all choices.
    """

    def __init__(self, model: openvino.Model) -> None:
        """Compile a copy of a quantized model. Raises StepError where OpenVINO cannot compile it."""
        import numpy as np
        import openvino
        from openvino import opset13

        copy = model.clone()
        self._switches: dict[str, str] = {}
        for index, node in enumerate(_roundings(copy)):
            readers = node.output(0).get_target_inputs()
            switch = opset13.parameter([], openvino.Type.boolean, name=f"{_SWITCH}{index}")
            switch.output(0).get_tensor().set_names({f"{_SWITCH}{index}"})
            copy.add_parameters([switch])
            self._switches[str(node.get_friendly_name())] = f"{_SWITCH}{index}"
            either = opset13.select(switch, node.output(0), node.input_value(0))
            for reader in readers:
                reader.replace_source_output(either.output(0))
        self._calls = Calls(copy, threads=1, options={**compiled.LATENCY, **compiled.FP32})
        self._states = {state: np.array(state) for state in (True, False)}

    def run(self, inputs: Tensors, chosen: Collection[str]) -> dict[str, np.ndarray]:
        """Return the outputs of the model in which the operators named in `chosen` round their activations."""
        switches = {switch: self._states[name in chosen] for name, switch in self._switches.items()}
        return self._calls.run({**inputs, **switches})


def _roundings(model: openvino.Model) -> list[openvino.Node]:
    """Return the operators that round an activation, in the order of the model."""
    return [node for node in model.get_ordered_ops() if node.get_type_name() == _ROUNDING]


def _layers(rounding: openvino.Node) -> dict[str, str]:
    """Return the names and kinds of the layers that read a rounded activation, up to the next rounding."""
    layers: dict[str, str] = {}
    pending, seen = [rounding], set()
    while pending:
        for reader in pending.pop().output(0).get_target_inputs():
            node = reader.get_node()
            name, kind = str(node.get_friendly_name()), node.get_type_name()
            if kind in _KINDS:
                layers[name] = kind
            elif kind != _ROUNDING and node.get_output_size() and name not in seen:
                seen.add(name)
                pending.append(node)
    return layers
