"""Ranges: the extremes of tensors and some of their values, observed on samples, and the 8 bits that suit them best."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from engine.kit.onnx import surgery
from engine.kit.quantization import trials
from engine.runtimes.onnxruntime import session as ort

if TYPE_CHECKING:
    from pathlib import Path

    import numpy as np
    import onnx_ir as ir

_VALUES = 2048
"""The number of values of a tensor that are stored for each sample, at places that a fixed seed chooses."""
_SEED = 8
_BITS = 40
"""The number of bits of a random number; the remainder by the size of a tensor is a place in the tensor."""
MARGINS = (1.0, 0.95, 0.9, 0.85, 0.8, 0.7, 0.6, 0.5)
"""The ranges that are tried, as shares of the range from the smallest to the largest value on all samples."""
_CODES = 255


@dataclass(frozen=True)
class TensorValues:
    """What samples show of a tensor: its smallest and largest value, 0 among them, and some of its values."""

    smallest: float
    largest: float
    values: np.ndarray


@dataclass(frozen=True)
class ByteRange:
    """The scale and the zero point of a tensor in unsigned 8-bit integers."""

    scale: np.float32
    zero: np.uint8


def observe(
    model: ir.Model, names: Sequence[str], samples: Sequence[Mapping[str, np.ndarray]], scratch: Path
) -> dict[str, TensorValues]:
    """Run a model on samples, and return an observation of each named tensor.

    ONNX Runtime runs a copy of the model, whose outputs are the numbers that are observed, so that no tensor leaves
    the run as a whole. Raises StepError where the model cannot run on the samples.
    """
    import numpy as np

    session = trials.opened(_watching(model.clone(), names), scratch)
    runs: dict[str, list[tuple[float, float, np.ndarray]]] = {name: [] for name in names}
    for sample in samples:
        results = ort.run(session, sample)
        for number, name in enumerate(names):
            smallest, largest, values = (results[f"{part}_{number}_observed"] for part in _PARTS)
            runs[name].append((float(smallest), float(largest), values))
    return {
        name: TensorValues(
            min(0.0, *(smallest for smallest, _, _ in each)),
            max(0.0, *(largest for _, largest, _ in each)),
            np.concatenate([values for _, _, values in each]),
        )
        for name, each in runs.items()
    }


def widest(observation: TensorValues) -> ByteRange:
    """Return the range that clips no value of the samples."""
    return _range(observation, 1.0)


def closest(observation: TensorValues) -> ByteRange:
    """Return the range with the least mean square error of the stored values; of equal ones the widest."""
    import numpy as np

    values = observation.values.astype(np.float64)

    def error(margin: float) -> float:
        tried = _range(observation, margin)
        codes = np.clip(np.rint(values / tried.scale) + tried.zero, 0, _CODES)
        return float((((codes - tried.zero) * tried.scale - values) ** 2).mean())

    return _range(observation, min(MARGINS, key=error))


def _range(observation: TensorValues, margin: float) -> ByteRange:
    import numpy as np

    width = (observation.largest - observation.smallest) * margin
    scale = np.float32(width / _CODES) if width > 0 else np.float32(0)
    if not scale > 0:
        return ByteRange(np.float32(1), np.uint8(0))
    zero = np.rint(-observation.smallest * margin / float(scale))
    return ByteRange(scale, np.uint8(np.clip(zero, 0, _CODES)))


_PARTS = ("smallest", "largest", "values")


def _watching(model: ir.Model, names: Sequence[str]) -> ir.Model:
    """Give a model the observed numbers as its only outputs; `model` is changed."""
    import numpy as np

    graph = model.graph
    values = surgery.values(graph)
    generator = random.Random(_SEED)  # noqa: S311  no secrets; numpy may change its generators from version to version
    places = [generator.getrandbits(_BITS) for _ in range(_VALUES)]
    stored = surgery.store(graph, "places_observed", np.array(places, np.int64))
    whole = surgery.store(graph, "whole_observed", np.array([-1], np.int64))
    outputs = []
    for number, name in enumerate(names):
        nodes = [
            surgery.node("ReduceMin", [values[name]], f"smallest_{number}_observed", "", keepdims=0),
            surgery.node("ReduceMax", [values[name]], f"largest_{number}_observed", "", keepdims=0),
            surgery.node("Reshape", [values[name], whole], f"flat_{number}_observed", ""),
            surgery.node("Size", [values[name]], f"size_{number}_observed", ""),
        ]
        nodes.append(surgery.node("Mod", [stored, nodes[-1].outputs[0]], f"places_{number}_observed", ""))
        flat, spread = nodes[-3].outputs[0], nodes[-1].outputs[0]
        nodes.append(surgery.node("Gather", [flat, spread], f"values_{number}_observed", ""))
        graph.extend(nodes)
        outputs += [nodes[0].outputs[0], nodes[1].outputs[0], nodes[-1].outputs[0]]
    graph.outputs[:] = outputs
    return model
