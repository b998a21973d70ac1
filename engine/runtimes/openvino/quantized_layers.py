"""Quantized layers: operators that read activations in 8 bits, and copies of a model in which some of them do not."""

from __future__ import annotations

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
_MOVING = frozenset({"Reshape", "Squeeze", "Transpose", "Unsqueeze"})
"""Operators that may stand between a rounded activation and the layer that multiplies it."""

_SWITCH = "recipe_switch_"
"""The beginning of the names of the inputs of `Switched` that say whether a layer reads rounded activations."""


def find(model: openvino.Model) -> dict[str, str]:
    """Return the name of each layer that reads rounded activations -> its kind, in the order of the model."""
    return {str(node.get_friendly_name()): node.get_type_name() for node in model.get_ordered_ops() if _rounded(node)}


def without(model: openvino.Model, left: Collection[str]) -> openvino.Model:
    """Return a copy of a model in which the layers named in `left` read their activations as they are.

    The weights of these layers stay in 8 bits, and are computed back to floating point.
    """
    copy = model.clone()
    for node in copy.get_ordered_ops():
        if node.get_friendly_name() in left:
            for reader, rounding in _rounded(node):
                reader.replace_source_output(rounding.input_value(0))
    return copy


class Switched:
    """A model whose layers each read rounded activations or the activations as they are, as every call says.

    The rounding is computed in fp32, so the model is compiled once for all choices of layers.
    """

    def __init__(self, model: openvino.Model) -> None:
        """Compile a copy of a quantized model. Raises StepError where OpenVINO cannot compile it."""
        import numpy as np
        import openvino
        from openvino import opset13

        copy = model.clone()
        self._switches: dict[str, str] = {}
        for index, node in enumerate(copy.get_ordered_ops()):
            rounded = _rounded(node)
            if rounded:
                switch = opset13.parameter([], openvino.Type.boolean, name=f"{_SWITCH}{index}")
                switch.output(0).get_tensor().set_names({f"{_SWITCH}{index}"})
                copy.add_parameters([switch])
                self._switches[str(node.get_friendly_name())] = f"{_SWITCH}{index}"
            for reader, rounding in rounded:
                either = opset13.select(switch, rounding.output(0), rounding.input_value(0))
                reader.replace_source_output(either.output(0))
        self._calls = Calls(copy, threads=1, options={**compiled.LATENCY, **compiled.FP32})
        self._states = {state: np.array(state) for state in (True, False)}

    def run(self, inputs: Tensors, chosen: Collection[str]) -> dict[str, np.ndarray]:
        """Return the outputs of the model in which the layers named in `chosen` read rounded activations."""
        switches = {switch: self._states[layer in chosen] for layer, switch in self._switches.items()}
        return self._calls.run({**inputs, **switches})


def _rounded(node: openvino.Node) -> list[tuple[openvino.Input, openvino.Node]]:
    """Return the inputs at which rounded activations come to a layer, each with the operator that rounds.

    An activation that goes to further layers on the way is left out, as it cannot be given to one of them alone.
    """
    if node.get_type_name() not in _KINDS:
        return []
    rounded = []
    for reader in node.inputs():
        source = reader.get_source_output()
        while source.get_node().get_type_name() in _MOVING and len(source.get_target_inputs()) == 1:
            reader = source.get_node().input(0)  # noqa: PLW2901 - the input one step up
            source = reader.get_source_output()
        if source.get_node().get_type_name() == _ROUNDING:
            rounded.append((reader, source.get_node()))
    return rounded
