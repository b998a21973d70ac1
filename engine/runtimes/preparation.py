"""Preparation of a graph for a runtime: how its precision is set, and which operators are fused."""

from __future__ import annotations

from enum import Enum
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from engine.recipe.schema import Recipe

CONTRIBUTED = "com.microsoft"
"""The ONNX domain of ONNX Runtime's own operators, among them the fused operators."""


class Lowering(Enum):
    """The way in which a graph gets the precision of a recipe."""

    DYNAMIC = "int8 weights ahead of time, activations quantized while it runs"
    WEIGHTS_ONLY = "weights in 4 or 8 bits ahead of time, activations stay in floating point"
    IN_THE_GRAPH = "the graph says the precision of every tensor"


def falls_back(recipe: Recipe) -> bool:
    """Whether a model stays in fp32 where int8 misses the default bounds: one of images, on a CPU.

    A recipe that sets a bound, or says how to quantize, is obeyed: where int8 misses the bound, the build fails.
    """
    bounds = ("cosine", "agreement", "max_abs", "variation", "rank", "precision_share", "metric")
    own = bool(recipe.quantize) or any(getattr(recipe.validation, name) is not None for name in bounds)
    return recipe.images is not None and not own and recipe.runtime.lowering(recipe) is Lowering.DYNAMIC


class Residual(Enum):
    """Whether a residual addition is fused into the normalization that follows the addition."""

    APART = "apart"
    FUSED = "fused"
