"""Equivalence: whether a changed graph gives the same numbers as the original graph, with masks of every kind."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from engine.errors import StepError
from engine.kit.inputs import cases, index_ranges, synthetic
from engine.kit.onnx import onnx_files
from engine.runtimes.onnxruntime import session as ort
from engine.text import reasons

if TYPE_CHECKING:
    import numpy as np
    import onnx
    import onnxruntime

    Trial = tuple[str, dict[str, np.ndarray], dict[str, np.ndarray]]

_BATCH = 3
_LENGTHS = (8, 64, 256, 4096)
"""Extents to try, in this order, for dynamic axes after the first axis: numbers of tokens, pixels or audio samples."""
_TOLERANCE = {"float64": 1e-3, "float32": 1e-3}
"""The name of an output's type -> the largest difference that counts as rounding, as a share of its largest value.

Rounding differs between two graphs because their kernels add up numbers in different orders. A rewrite of a graph that
breaks a mask or fuses the wrong operators changes an output by about the output's own size, far beyond a tolerance of
0.001.
"""
_HALF_TOLERANCE = 2e-2
"""The tolerance for outputs whose type has 16 bits or fewer: a share of the output's largest value."""


def difference(original: Path, changed: Path) -> str | None:
    """Return how a changed model differs from the original on small random inputs, as a text; None where they agree.

    The random inputs are equal in every run. A dynamic first axis has 3 rows; every other dynamic axis has the first
    extent of `_LENGTHS` that the model accepts. The model runs once with each kind of attention mask: full, padded on
    the right, padded on the left, and with every third position hidden. ONNX Runtime runs the original graph with its
    basic optimizations only. Where the original or the changed model cannot run on the random inputs, the returned text
    gives the reason.
    """
    model = onnx_files.load_graph(original)
    try:
        # One session at a time, and no weights rearranged in memory, because the model may be large.
        expected = _answers(ort.session(original, threads=1, level="basic", prepack=False), model)
        candidate = ort.session(changed, threads=1, prepack=False)
        for kind, inputs, outputs in expected:
            got = ort.run(candidate, inputs)
            for name, array in outputs.items():
                distance = cases.relative_error(array, got[name])
                if distance > _TOLERANCE.get(array.dtype.name, _HALF_TOLERANCE):
                    return f"{name} differs by {distance:.2g} of its largest value with {kind} inputs"
    except StepError as error:
        return reasons.because("it could not be tried on random inputs", error)
    return None


def _answers(truth: onnxruntime.InferenceSession, model: onnx.ModelProto) -> list[Trial]:
    """Return each trial's kind of mask, inputs and original outputs, at the first length that the model accepts.

    Raises the StepError of the last length where the model accepts none of the lengths.
    """
    for length in _LENGTHS:
        try:
            return [(kind, inputs, ort.run(truth, inputs)) for kind, inputs in trials(model, length=length)]
        except StepError:
            if length == _LENGTHS[-1]:
                raise
    return []


def trials(model: onnx.ModelProto, *, length: int = 8) -> Iterator[tuple[str, dict[str, np.ndarray]]]:
    """Yield seeded random inputs for a model, once for each kind of mask: the kind, and a tensor for each input."""
    import numpy as np

    generator = np.random.default_rng(0)
    specs, ranges = onnx_files.inputs(model), index_ranges.of(model)
    drawn = {}
    for name, shape in synthetic.shapes(specs, {}, first=_BATCH, other=length).items():
        drawn[name] = synthetic.tensor(generator, specs[name].dtype, shape, below=ranges.get(name, 2))
    masks = [name for name in specs if "mask" in name and drawn[name].ndim == 2]  # noqa: PLR2004  [batch, sequence]
    if not masks:
        yield "random", drawn
        return
    for kind in synthetic.MASKS:
        yield kind, drawn | {name: synthetic.mask(kind, drawn[name].shape).astype(drawn[name].dtype) for name in masks}
