"""Quantizer: int8 for OpenVINO, with static ranges that NNCF measures on samples."""

from __future__ import annotations

import contextlib
import os
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from engine.runtimes.openvino import ir
from engine.runtimes.openvino.ir import UnfitModelError
from engine.text import reasons

if TYPE_CHECKING:
    import numpy as np
    import openvino

_SMOOTHING = 0.7
"""The strength of SmoothQuant in front of matrix products: see docs/adr/0032."""
_NO_TELEMETRY = "NNCF_CI"
"""The environment variable with which NNCF sends no messages about its use over the network."""
_NARROW = 32
"""The largest head size whose products of queries and keys stay in floating point: see docs/adr/0032."""


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
                "build it with precision: fp32, or use runtime: onnxruntime",
            ) from error


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
