"""Output axes: which axes of a model's outputs are those of rows and of tokens, from OpenVINO's own shapes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import openvino

    from engine.kit.onnx.onnx_files import Input
    from engine.runtimes.fixed_shapes import AxesOfOutputs

_PROBES = ((2, 5), (3, 7))
"""Two pairs of the number of rows and the number of tokens, from which the axes of an output are known."""


def of_model(
    model: openvino.Model, inputs: Mapping[str, Input], rows: str | None, tokens: str | None
) -> AxesOfOutputs | None:
    """Return for each axis of each output whether it is the axis of rows, that of tokens or neither (None).

    The result is None where an output has an axis whose size follows otherwise from these two, or cannot be known.
    """
    probed = []
    for sizes in _PROBES:
        known: dict[str | int | None, int] = dict(zip((rows, tokens), sizes, strict=True))
        shapes = {name: [known.get(axis, axis) for axis in value.shape] for name, value in inputs.items()}
        if any(isinstance(axis, str) for shape in shapes.values() for axis in shape):
            return None
        probe = model.clone()
        try:
            probe.reshape(shapes)
        except RuntimeError:
            return None
        probed.append({value.any_name: value.get_partial_shape() for value in probe.outputs})
    pairs: dict[tuple[int, int], str | None] = {
        (before, after): name for name, before, after in zip((rows, tokens), *_PROBES, strict=True) if name is not None
    }
    result: dict[str, list[str | None]] = {}
    for name, before in probed[0].items():
        after = probed[1][name]
        if before.is_dynamic or after.is_dynamic:
            return None
        result[name] = []
        for pair in zip(before.to_shape(), after.to_shape(), strict=True):
            if pair[0] != pair[1] and pair not in pairs:
                return None
            result[name].append(pairs.get(pair))
    return result
