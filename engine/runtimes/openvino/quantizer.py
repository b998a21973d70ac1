"""Quantizer: int8 for OpenVINO, with static ranges that NNCF measures on samples."""

from __future__ import annotations

import contextlib
import os
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
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


def ways(model: openvino.Model) -> tuple[bool, ...]:
    """Return the values of `asymmetric` that are worth a trial for a model.

    Which ranges of activations are better depends on the convolutions' activation functions and on the samples.
    Transformers always have asymmetric ranges.
    """
    return (True,) if _is_transformer(model) else (False, True)


def quantized(
    model: openvino.Model, samples: Sequence[Mapping[str, np.ndarray]], *, asymmetric: bool = True
) -> openvino.Model:
    """Return a model whose matrix products and convolutions compute in int8, calibrated on samples.

    Weights have a symmetric scale per output channel, activations a scale per tensor. With `asymmetric`, the range of
    an activation with negative values is from the least to the largest value; otherwise, it has 0 in the middle. Raises
    UnfitModelError where NNCF cannot quantize the model.
    """
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
                model_type=nncf.ModelType.TRANSFORMER if _is_transformer(model) else None,
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
    computed = ir.computed(model)
    attention = any(
        node.get_type_name() == "MatMul"
        and all(factor.get_node().get_friendly_name() in computed for factor in node.input_values())
        for node in model.get_ops()
    )
    return attention and kinds["Softmax"] > 0 and kinds["Convolution"] <= max(kinds["MVN"], kinds["Softmax"])


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
