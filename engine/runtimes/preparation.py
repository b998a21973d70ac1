"""Preparation of a graph for a runtime: how its precision is set, and which operators are fused."""

from __future__ import annotations

from enum import Enum

CONTRIBUTED = "com.microsoft"
"""The ONNX domain of ONNX Runtime's own operators, among them the fused operators."""


class Lowering(Enum):
    """The way in which a graph gets the precision of a recipe."""

    DYNAMIC = "int8 weights ahead of time, activations quantized while it runs"
    WEIGHTS_ONLY = "weights in 4 or 8 bits ahead of time, activations stay in floating point"
    IN_THE_GRAPH = "the graph says the precision of every tensor"


class Residual(Enum):
    """Whether a residual addition is fused into the normalization that follows the addition."""

    APART = "apart"
    FUSED = "fused"
