"""Properties of a model, which `fetch` reports and against which `engine.feasibility` checks a recipe."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from engine.recipe.licenses import Licensed
from engine.reporting import WRITTEN, TypedReport
from engine.runtimes import axes

Axes = tuple[int | str, ...]
"""A tensor's shape: for each axis its size, or its name where the axis may have any size."""


@dataclass(frozen=True, kw_only=True)
class GraphFacts(TypedReport):
    """Properties of a model that come from the weights and the config of a checkpoint, or from an ONNX graph."""

    architecture: str = field(default="unknown", metadata=WRITTEN)
    parameters: int | None = field(default=None, metadata=WRITTEN)
    axes: Mapping[str, Axes] = field(default_factory=dict, metadata=WRITTEN)
    """The shape of each input by name; empty where the inputs are not known."""
    width: int | None = field(default=None, metadata=WRITTEN)
    """The hidden size: how many numbers each token has between two layers."""
    types: Mapping[str, str] = field(default_factory=dict)
    """The dtype of each input of an ONNX graph."""
    outputs: Mapping[str, tuple[str, Axes | None]] = field(default_factory=dict)
    """The dtype and the shape of each output of an ONNX graph; the shape is None where the rank is not known."""
    operators: Mapping[str, tuple[str, ...]] | None = None
    """The operators of an ONNX graph that are not ONNX's own, by domain; None for a checkpoint."""
    quantized: tuple[str, ...] = ()
    """The types to which Q/DQ operators of an ONNX graph quantize, as recipes call them: int8, fp8, int4."""


@dataclass(frozen=True, kw_only=True)
class ModelFacts(GraphFacts):
    """All properties of a model that are known without the values of any tensor."""

    kind: str
    """The kind of checkpoint: transformers, timm or onnx."""
    task: str | None = field(default=None, metadata=WRITTEN)
    """The task that the model's config names; None where the config names no task."""
    max_sequence: int | None = field(default=None, metadata=WRITTEN)
    """The largest number of tokens that the model has position embeddings for; None for no limit."""
    bytes: int = field(default=0, metadata=WRITTEN)
    """The size of the model's weights in bytes."""
    source: str | None = None
    """The source from which the model was fetched; None for a model that was inspected and not fetched."""

    licenses: tuple[Licensed, ...] = ()
    """What is known about the licences of the model, and of a tokenizer from elsewhere."""

    @property
    def dynamic(self) -> tuple[str, ...] | None:
        """The names of the input axes whose sizes a profile states; None where the inputs are not known."""
        return axes.free(self.axes) if self.axes else None
