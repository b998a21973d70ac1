"""Usual work: the shares of a model's multiplications in each precision, for the shape that the recipe calls usual."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from engine.errors import StepError
from engine.kit.accuracy.report import Work
from engine.kit.inputs import bench_inputs, cases

if TYPE_CHECKING:
    import numpy as np
    import onnx

    Count = Callable[[Mapping[str, np.ndarray]], Mapping[str, int]]


def shares(
    count: Count,
    graph: onnx.ModelProto | None,
    opt: Mapping[str, int],
    reference: Path,
    *,
    generates: bool = False,
    longest: int | None = None,
) -> Work:
    """Return the shares of the multiplications that `count` counts in one run, on inputs of the extents `opt`.

    `opt` maps an axis to its extent; axes without an entry have usual extents. A model that refuses random inputs, such
    as a speech model that takes a sample rate, runs on the first case of the reference, and so does a model that is no
    ONNX graph. Raises StepError where the model cannot run on the first case either.

    A model that `generates` text runs on a prompt of at most `longest` tokens.
    """
    if graph is None:
        return Work.of(count(cases.load(reference)[0].inputs), {})
    draw = bench_inputs.prompts if generates else bench_inputs.draw
    extents = bench_inputs.usual_prompt(opt, longest) if generates else bench_inputs.usual_extents(graph, opt)
    try:
        return Work.of(count(draw(graph, extents)), extents)
    except StepError as error:
        print(f"random inputs fail ({error.what}), so the multiplications are counted on a case of the reference")
    return Work.of(count(cases.load(reference)[0].inputs), {})
