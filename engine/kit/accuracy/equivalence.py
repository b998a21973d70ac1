"""Equivalence: two forms of one model must give the same numbers, whatever the mask."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from engine.errors import StepError
from engine.kit.onnx import onnx_files
from engine.kit.onnx.onnx_files import Input
from engine.runtimes.onnxruntime import session as ort

if TYPE_CHECKING:
    import numpy as np
    import onnx
    import onnxruntime

_BATCH = 3
_LENGTHS = (8, 64, 4096)
"""Extents to try for other dynamic axes: tokens, pixels, audio samples. The first that the original accepts counts."""
# What passes an index on unchanged between an input and the table that it is looked up in.
_TRANSPARENT = frozenset({"Cast", "Identity", "Reshape", "Squeeze", "Unsqueeze"})
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
    taken = onnx_files.inputs(model)
    drawn = {name: _draw(value, model, generator, length) for name, value in taken.items()}
    masks = [name for name in taken if "mask" in name and drawn[name].ndim == 2]  # noqa: PLR2004  [batch, sequence]
    if not masks:
        yield "random", drawn
        return
    for kind in ("full", "right-padded", "left-padded", "holed"):
        yield kind, drawn | {name: _mask(kind, drawn[name]) for name in masks}


def _draw(value: Input, model: onnx.ModelProto, generator: np.random.Generator, length: int) -> np.ndarray:
    shape = [
        size if isinstance(size, int) else _BATCH if index == 0 else length for index, size in enumerate(value.shape)
    ]
    if value.dtype.startswith("float"):
        return generator.standard_normal(shape).astype(value.dtype)
    if value.dtype == "bool":
        return generator.integers(0, 2, shape).astype(bool)
    if value.dtype.startswith(("int", "uint")):
        return generator.integers(0, index_bound(model, value.name) or 2, shape).astype(value.dtype)
    raise StepError(f"no random values can be drawn for {value.name}, of type {value.dtype}")


def index_bound(model: onnx.ModelProto, name: str) -> int | None:
    """Return the rows of the smallest table that an integer input is looked up in; None where there is none."""
    tables = {tensor.name: tensor.dims for tensor in model.graph.initializer if len(tensor.dims) > 1}
    reached = {name}
    rows = []
    for node in model.graph.node:  # in topological order, so that one pass follows a chain
        if node.op_type in _TRANSPARENT and node.input[0] in reached:
            reached.update(node.output)
        if node.op_type == "Gather" and node.input[1] in reached and node.input[0] in tables:
            rows.append(int(tables[node.input[0]][0]))
        if node.op_type == "EmbedLayerNormalization":
            pairs = ((node.input[0], node.input[2]), (node.input[1], node.input[4]))
            rows += [int(tables[table][0]) for index, table in pairs if index in reached and table in tables]
    return min(rows, default=None)


def _mask(kind: str, like: np.ndarray) -> np.ndarray:
    """Return a mask of a kind; each row keeps at least one position, since softmax over nothing means nothing."""
    import numpy as np

    rows, length = like.shape
    kept = np.maximum(1, length - 2 * np.arange(rows))[:, None]  # each row shorter than the one before
    position = np.arange(length)[None, :]
    masks: Mapping[str, np.ndarray] = {
        "full": np.ones(like.shape, dtype=bool),
        "right-padded": position < kept,
        "left-padded": position >= length - kept,
        "holed": (position + np.arange(rows)[:, None]) % 3 != 1,
    }
    return np.asarray(masks[kind]).astype(like.dtype)


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
