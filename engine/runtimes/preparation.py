"""How a graph is prepared for a runtime: how its precision comes into it, what is fused."""

from __future__ import annotations

from enum import Enum

CONTRIBUTED = "com.microsoft"
"""The domain of ONNX Runtime's own operators; those that fusion puts into a graph are among them."""


class Lowering(Enum):
    """How the precision of a recipe comes into the graph."""

    DYNAMIC = "int8 weights ahead of time, activations quantized while it runs"
    IN_THE_GRAPH = "the graph says the precision of every tensor"


class Residual(Enum):
    """Whether a residual addition is fused into the normalization behind it."""

    APART = "apart"
    FUSED = "fused"
