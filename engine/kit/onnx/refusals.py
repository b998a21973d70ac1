"""Refusals: inputs of ONNX models that no package can take, with what works instead."""

from __future__ import annotations

from engine.errors import StepError
from engine.kit.onnx.onnx_files import Input

_NUMBERS = frozenset({"bool", "float16", "float32", "float64"}) | {
    f"{sign}int{bits}" for sign in ("", "u") for bits in (8, 16, 32, 64)
}


def refuse_unusual(value: Input) -> None:
    """Raise StepError for an input of a type that numpy lacks: text, bfloat16 or 8-bit floats."""
    if value.dtype in _NUMBERS:
        return
    is_text = value.dtype in {"object", "str"}
    raise StepError(
        f"the model's input {value.name} is {'text' if is_text else value.dtype}: that is not supported yet",
        hint="export the part of the model that takes numbers: text becomes numbers before the model"
        if is_text
        else "export the model with an input of float32 and a Cast behind it",
    )


def refuse_unranked(value: Input) -> None:
    """Raise StepError for an input whose number of axes the model does not state: Triton cannot describe the input."""
    if not value.ranked:
        raise StepError(
            f"the model does not state the number of axes of its input {value.name}",
            hint="export it with shapes; an axis in a shape may have any size (dynamic_axes, dynamic_shapes)",
        )
