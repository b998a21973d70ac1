"""Equivalence: two forms of one model must give the same numbers, whatever the mask."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from engine.errors import StepError
from engine.kit.inputs import index_ranges, synthetic
from engine.kit.onnx import onnx_files
from engine.runtimes.onnxruntime import session as ort

if TYPE_CHECKING:
    import numpy as np
    import onnx
    import onnxruntime

_BATCH = 3
_LENGTHS = (8, 64, 4096)
"""Extents to try for other dynamic axes: tokens, pixels, audio samples. The first that the original accepts counts."""
# Rounding: kernels add up in another order. A wrong mask or a wrong pattern is off by the size of the output.
_TOLERANCE = {"float64": 1e-3, "float32": 1e-3}
_HALF_TOLERANCE = 2e-2


def difference(original: Path, changed: Path) -> str | None:
    """Return in words how a changed model differs from its original on small random inputs; None where it agrees.

    The inputs are seeded, 3 x 8 where axes are dynamic (longer where a model needs it), with attention masks that
    are full, right-padded, left-padded and holed. The original is the truth here, and runs with as little
    optimization as possible. A model that cannot be run on such inputs has not been shown to agree: the words say so.
    """
    model = onnx_files.load_graph(original)
    try:
        truth = ort.session(original, threads=1, level="basic")
        expected = _answers(truth, model)
        candidate = ort.session(changed, threads=1)
        for kind, inputs, outputs in expected:
            got = ort.run(candidate, inputs)
            for name, array in outputs.items():
                if distance := _beyond_rounding(array, got[name]):
                    return f"{name} differs by {distance:.2g} of its largest value with {kind} inputs"
    except StepError as error:
        return f"it could not be tried on random inputs: {' '.join(str(error).split())[:300]}"
    return None


def _answers(
    truth: onnxruntime.InferenceSession, model: onnx.ModelProto
) -> list[tuple[str, dict[str, np.ndarray], dict[str, np.ndarray]]]:
    """Return (kind, inputs, outputs) at the first length that the model runs at. Raises the last StepError."""
    for length in _LENGTHS:
        try:
            return [(kind, inputs, ort.run(truth, inputs)) for kind, inputs in trials(model, length=length)]
        except StepError as error:
            refused = error
    raise refused


def trials(model: onnx.ModelProto, *, length: int = 8) -> Iterator[tuple[str, dict[str, np.ndarray]]]:
    """Yield seeded random inputs for a model: the kind of mask, and an array per input."""
    import numpy as np

    generator = np.random.default_rng(0)
    specs, ranges = onnx_files.inputs(model), index_ranges.of(model)
    drawn = {}
    for name, spec in specs.items():
        shape = synthetic.shape(spec, {}, first=_BATCH, other=length)
        drawn[name] = synthetic.tensor(generator, spec.dtype, shape, below=ranges.get(name, 2))
    masks = [name for name in specs if "mask" in name and drawn[name].ndim == 2]  # noqa: PLR2004  [batch, sequence]
    if not masks:
        yield "random", drawn
        return
    for kind in synthetic.MASKS:
        yield kind, drawn | {name: synthetic.mask(kind, drawn[name].shape).astype(drawn[name].dtype) for name in masks}


def _beyond_rounding(expected: np.ndarray, got: np.ndarray) -> float:
    """Return the largest difference as a share of the largest value; 0 where rounding explains it."""
    import numpy as np

    if expected.shape != got.shape:
        return float("inf")
    if expected.dtype.kind != "f":
        return 0.0 if np.array_equal(expected, got) else 1.0
    first, second = expected.astype("float64"), got.astype("float64")
    if not np.array_equal(np.isfinite(first), np.isfinite(second)):
        return float("inf")
    finite = np.isfinite(first)
    if not finite.any():
        return 0.0
    share = float(np.abs(first - second)[finite].max() / max(np.abs(first)[finite].max(), 1e-6))
    return share if share > _TOLERANCE.get(expected.dtype.name, _HALF_TOLERANCE) else 0.0
