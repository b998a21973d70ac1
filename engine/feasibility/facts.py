"""What a model says of itself: what `fetch` reports, and what feasibility holds a recipe against."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from engine.reporting import WRITTEN, TypedReport

Axes = tuple[int | str, ...]
"""The sizes of a tensor's axes, and the names of those that may have any size."""


@dataclass(frozen=True, kw_only=True)
class GraphFacts(TypedReport):
    """What the weights and the configuration, or the ONNX graph, tell."""

    architecture: str = field(default="unknown", metadata=WRITTEN)
    parameters: int | None = field(default=None, metadata=WRITTEN)
    axes: Mapping[str, Axes] = field(default_factory=dict, metadata=WRITTEN)
    """Of each input; none where nothing is known of them."""
    width: int | None = field(default=None, metadata=WRITTEN)
    """Numbers per token between two layers."""
    types: Mapping[str, str] = field(default_factory=dict)
    """The dtype of each input of an ONNX graph."""
    outputs: Mapping[str, tuple[str, Axes | None]] = field(default_factory=dict)
    """The dtype of each output of an ONNX graph, and its shape where its rank is known."""
    operators: Mapping[str, tuple[str, ...]] | None = None
    """Of an ONNX graph: by domain, the operators that are not ONNX's own."""


@dataclass(frozen=True, kw_only=True)
class ModelFacts(GraphFacts):
    """What is known of a model without reading a tensor."""

    kind: str
    """The kind of checkpoint: transformers, timm or onnx."""
    task: str | None = field(default=None, metadata=WRITTEN)
    """What the model says that it is for."""
    max_sequence: int | None = field(default=None, metadata=WRITTEN)
    """The tokens that it has positions for; None where there is no limit."""
    bytes: int = field(default=0, metadata=WRITTEN)
    """The size of the weights."""
    source: str | None = None
    """Where it was fetched from; None for a model that was only looked at."""

    @property
    def dynamic(self) -> tuple[str, ...] | None:
        """The names of the axes that may have any size; None where nothing is known of axes."""
        if not self.axes:
            return None
        return tuple(dict.fromkeys(axis for shape in self.axes.values() for axis in shape if isinstance(axis, str)))
