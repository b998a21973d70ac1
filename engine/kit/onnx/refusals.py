"""Refusals: inputs and outputs of ONNX models that no package can take or give, with what works instead."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

from engine.errors import StepError
from engine.kit.onnx.onnx_files import Input

End = Literal["input", "output"]

_INTEGERS = tuple(f"{sign}int{bits}" for sign in ("", "u") for bits in (8, 16, 32, 64))
_NUMBERS = ("bool", "float16", "float32", "float64", *_INTEGERS)
"""The types of inputs and outputs that numpy can hold, and so samples."""
_NO_TEXT: Mapping[End, str] = {
    "input": "export the part of the model that takes numbers: a tokenizer makes them of text",
    "output": "export it with numbers instead: a classifier that was trained on integer labels gives integers",
}


def refuse_unusual(value: Input, end: End = "input") -> None:
    """Raise StepError for an input or output of a type that numpy lacks: text, bfloat16 or 8-bit floats."""
    refuse_text(value, end)
    if value.dtype not in _NUMBERS:
        raise StepError(
            f"the model's {end} {value.name} is {value.dtype}: that is not supported yet",
            [f"supported: {', '.join(_NUMBERS)}"],
            f"export the model with an {end} of float32, and cast it inside of the graph",
        )


def refuse_text(value: Input, end: End) -> None:
    """Raise StepError for an input or output that is text."""
    if value.dtype in {"object", "str"}:
        raise StepError(f"the model's {end} {value.name} is text: that is not supported", hint=_NO_TEXT[end])


def refuse_unranked(value: Input) -> None:
    """Raise StepError for an input whose number of axes the model does not state: Triton cannot describe the input."""
    if not value.ranked:
        raise StepError(
            f"the model does not state the number of axes of its input {value.name}",
            hint="export it with shapes; an axis in a shape may have any size (dynamic_axes, dynamic_shapes)",
        )
