"""Usual work: the shares of a model's multiplications in each precision, for the shape that the recipe calls usual."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from engine.errors import StepError
from engine.kit.accuracy.report import Work
from engine.kit.inputs import bench_inputs, cases
from engine.kit.onnx import onnx_files
from engine.runtimes import axes

if TYPE_CHECKING:
    import numpy as np
    import onnx

    from engine.kit.onnx.onnx_files import Input

    Count = Callable[[Mapping[str, np.ndarray]], Mapping[str, int]]


def shares(
    count: Count,
    model: onnx.ModelProto | Mapping[str, Input],
    opt: Mapping[str, int],
    reference: Path,
    *,
    generates: bool = False,
    longest: int | None = None,
) -> Work:
    """Return the shares of the multiplications that `count` counts in one run, on inputs of the extents `opt`.

    `model` is an ONNX graph, or the inputs of a model whose multiplications depend on shapes alone. `opt` maps an axis
    to its extent; axes without an entry have usual extents. A model that refuses random inputs, such as a speech model
    that takes a sample rate, runs on the first case of the reference. Raises StepError where the model cannot run on
    the first case either.

    A model that `generates` text runs on a prompt of at most `longest` tokens.
    """
    if isinstance(model, Mapping):
        extents = bench_inputs.usual_extents(model, opt)
        return Work.of(count(_zeros(model, extents)), extents)
    if generates:
        draw, extents = bench_inputs.prompts, bench_inputs.usual_prompt(opt, longest)
    else:
        draw, extents = bench_inputs.draw, bench_inputs.usual_extents(onnx_files.inputs(model), opt)
    try:
        return Work.of(count(draw(model, extents)), extents)
    except StepError as error:
        print(f"random inputs fail ({error.what}), so the multiplications are counted on a case of the reference")
    return Work.of(count(cases.load(reference)[0].inputs), {})


def _zeros(inputs: Mapping[str, Input], extents: Mapping[str, int]) -> dict[str, np.ndarray]:
    """Return inputs of zeros; an axis whose extent follows from no other has one entry."""
    import numpy as np

    return {
        name: np.zeros([axes.extent(axis, extents) or 1 for axis in value.shape], value.dtype)
        for name, value in inputs.items()
    }
