"""Usual shapes: the profile and the shape to measure of a recipe that states neither."""

from __future__ import annotations

from typing import TYPE_CHECKING

from engine.kit.checkpoints import checkpoint as checkpoints
from engine.kit.inputs import bench_inputs
from engine.kit.onnx import onnx_files
from engine.runtimes import axes
from engine.runtimes import profiles as runtime_profiles

if TYPE_CHECKING:
    from pathlib import Path

    import onnx

    from engine.recipe.values import Profile


def profiles(graph: onnx.ModelProto, checkpoint: Path | None) -> tuple[Profile, ...]:
    """Return the profile that `recipe check` assumes for a recipe without profiles; empty for an ONNX file."""
    if checkpoint is None or checkpoints.kind(checkpoint) == "onnx":
        return ()
    free = axes.free(axes.shapes(onnx_files.inputs(graph)))
    return runtime_profiles.usual(free, checkpoints.max_sequence(checkpoint))


def measured(graph: onnx.ModelProto, checkpoint: Path | None, *, new_tokens: int | None) -> dict[str, int]:
    """Return the shape to measure for a recipe without shapes and profiles: `opt` of the usual profile.

    A model that generates `new_tokens` tokens gets a usual prompt. The result is empty for a model without free axes.
    """
    if new_tokens is not None:
        longest = None if checkpoint is None else checkpoints.max_sequence(checkpoint)
        return bench_inputs.usual_prompt({}, None if longest is None else max(1, longest - new_tokens))
    return {axis: extent.opt for profile in profiles(graph, checkpoint) for axis, extent in profile.items()}
