"""Quantizer: int8 for OpenVINO, with static ranges that NNCF measures on samples, and layers that stay as they are."""

from __future__ import annotations

import contextlib
import os
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from engine.runtimes.openvino import compiled, ir
from engine.runtimes.openvino.compiled import Calls
from engine.runtimes.openvino.ir import UnfitModelError
from engine.text import reasons

if TYPE_CHECKING:
    import numpy as np
    import openvino

    from engine.runtimes.openvino.compiled import Tensors

_SMOOTHING = 0.7
"""The strength of SmoothQuant in front of matrix products: see docs/adr/0032."""
_NO_TELEMETRY = "NNCF_CI"
"""The environment variable with which NNCF sends no messages about its use over the network."""
_NARROW = 32
"""The largest head size whose products of queries and keys stay in floating point: see docs/adr/0032."""
_KINDS = frozenset(
    {"Convolution", "ConvolutionBackpropData", "GroupConvolution", "GroupConvolutionBackpropData", "MatMul"}
)
_ROUNDING = "FakeQuantize"
"""The operator that rounds an activation to one of 256 values."""
_DECOMPRESSING = frozenset({"Convert", "Multiply", "Reshape", "Subtract"})
"""The operators between a weight in 8 bits and the operator that reads it."""
_INSTEAD = "build it with precision: fp32, or use runtime: onnxruntime"
_SWITCH = "recipe_switch_"
"""The beginning of the names of the inputs of `Switched` that say whether an activation is rounded."""


def ways(model: openvino.Model) -> tuple[bool, ...]:
    """Return the values of `asymmetric` that are worth a trial for a model.

    Which ranges of activations are better depends on the convolutions' activation functions and on the samples.
    Transformers always have asymmetric ranges.
    """
    return (True,) if _is_transformer(model) else (False, True)


def quantized(
    model: openvino.Model,
    samples: Sequence[Mapping[str, np.ndarray]],
    *,
    asymmetric: bool = True,
    kept: Collection[str] = (),
) -> openvino.Model:
    """Return a model whose matrix products and convolutions compute in int8, calibrated on samples.

    Weights have a symmetric scale per output channel, activations a scale per tensor. With `asymmetric`, the range of
    an activation with negative values is from the least to the largest value; otherwise, it has 0 in the middle. The
    products of queries and keys of small heads stay in floating point. Raises UnfitModelError where NNCF cannot
    quantize the model. The operators named in `kept` stay in floating point, too.
    """
    transformer = _is_transformer(model)
    floating = _narrow_products(model) if transformer else []
    floating += [name for node in model.get_ops() if (name := str(node.get_friendly_name())) in kept]
    with _alone():
        import nncf
        from nncf.quantization import advanced_parameters as advanced

        alphas = advanced.AdvancedSmoothQuantParameters(matmul=_SMOOTHING)
        try:
            return nncf.quantize(
                model,
                nncf.Dataset([dict(sample) for sample in samples]),
                subset_size=len(samples),
                preset=nncf.QuantizationPreset.MIXED if asymmetric else nncf.QuantizationPreset.PERFORMANCE,
                model_type=nncf.ModelType.TRANSFORMER if transformer else None,
                ignored_scope=nncf.IgnoredScope(names=floating),
                advanced_parameters=advanced.AdvancedQuantizationParameters(smooth_quant_alphas=alphas),
            )
        except Exception as error:  # RuntimeError and NNCF's own errors
            raise UnfitModelError(
                "NNCF cannot quantize this model",
                reasons.facts(error),
                _INSTEAD,
            ) from error


def with_weights(model: openvino.Model, kept: Collection[str] = ()) -> tuple[openvino.Model, dict[str, int]]:
    """Return a model whose stored weights are in int8, and the number of its operators that read them, by kind.

    A weight has a scale and a zero point per output channel. The operators named in `kept` keep their weights. While
    the model runs, OpenVINO rounds activations to int8 on CPUs with kernels for it, with a scale for each 32 numbers of
    a row: its default, as Triton's backend passes no other. Raises UnfitModelError where NNCF cannot compress a model.
    """
    with _alone():
        import nncf

        ignored = nncf.IgnoredScope(names=list(kept), validate=False)
        try:
            model = nncf.compress_weights(model, mode=nncf.CompressWeightsMode.INT8_ASYM, ignored_scope=ignored)
        except Exception as error:  # RuntimeError and NNCF's own errors
            raise UnfitModelError("NNCF cannot compress this model", reasons.facts(error), _INSTEAD) from error
    quantized = [node for node in model.get_ops() if has_stored_codes(node)]
    return model, dict(sorted(Counter(node.get_type_name() for node in quantized).items()))


def has_stored_codes(node: openvino.Node) -> bool:
    """Tell whether an operator reads a stored tensor of 8 bits, which its scales bring back to floating point."""
    for value in node.input_values() if node.get_type_name() in {*_KINDS, "Gather"} else ():
        source = value.get_node()
        while source.get_type_name() in _DECOMPRESSING:
            source = source.input_value(0).get_node()
        if source.get_type_name() == "Constant" and source.get_element_type().get_type_name() in {"i8", "u8"}:
            return True
    return False


def _is_transformer(model: openvino.Model) -> bool:
    """Tell whether a model has attention, and not more convolutions than normalizations.

    For other models, NNCF's settings for transformers leave most convolutions in floating point.
    """
    kinds = Counter(node.get_type_name() for node in model.get_ops())
    return bool(
        _products(model) and kinds["Softmax"] > 0 and kinds["Convolution"] <= max(kinds["MVN"], kinds["Softmax"])
    )


def _narrow_products(model: openvino.Model) -> list[str]:
    """Return the names of products of two activations that sum over at most `_NARROW` numbers.

    NNCF's settings for transformers quantize the product of queries and keys, and not the product behind the softmax.
    """
    names = []
    for node in _products(model):
        shape = node.input_value(0).get_partial_shape()
        if shape.rank.is_static and len(shape) > 1:
            summed = shape[-2 if node.get_attributes()["transpose_a"] else -1]
            if summed.is_static and summed.get_length() <= _NARROW:
                names.append(str(node.get_friendly_name()))
    return names


def _products(model: openvino.Model) -> list[openvino.Node]:
    """Return the matrix products of two activations."""
    computed = ir.computed(model)
    return [
        node
        for node in model.get_ordered_ops()
        if node.get_type_name() == "MatMul"
        and all(factor.get_node().get_friendly_name() in computed for factor in node.input_values())
    ]


@contextlib.contextmanager
def _alone() -> Iterator[None]:
    """Let NNCF print no progress bars, and send nothing."""
    before = os.environ.get(_NO_TELEMETRY)
    os.environ[_NO_TELEMETRY] = "1"
    try:
        with open(os.devnull, "w", encoding="utf-8") as nowhere, contextlib.redirect_stdout(nowhere):
            yield
    finally:
        if before is None:
            del os.environ[_NO_TELEMETRY]
        else:
            os.environ[_NO_TELEMETRY] = before


def rounded_layers(model: openvino.Model) -> dict[str, dict[str, str]]:
    """Return the name of each operator that rounds an activation -> the layers that read it, with their kinds.

    A layer multiplies by weights, or two activations. Operators such as Concat may stand on the way to a layer.
    """
    return {str(node.get_friendly_name()): _layers(node) for node in _roundings(model)}


def counted_layers(model: openvino.Model, left: Collection[str]) -> dict[str, int]:
    """Return the number of layers that read rounded activations only, by kind, where the roundings in `left` are."""
    read = rounded_layers(model)
    floating = {layer for name in left for layer in read[name]}
    layers = {layer: kind for of_one in read.values() for layer, kind in of_one.items() if layer not in floating}
    return dict(sorted(Counter(layers.values()).items()))


def without_rounding(model: openvino.Model, left: Collection[str]) -> openvino.Model:
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
