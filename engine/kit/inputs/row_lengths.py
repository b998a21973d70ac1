"""Row lengths: inputs that count the elements of each row, as models of speech and text without a mask have them."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import TYPE_CHECKING

from engine.runtimes import axes

if TYPE_CHECKING:
    from engine.kit.onnx.onnx_files import Input

_NAME = re.compile(r"(^|_)(len|lens|length|lengths)$", re.IGNORECASE)


def longest(specs: Mapping[str, Input], shapes: Mapping[str, tuple[int, ...]]) -> dict[str, int]:
    """Return the name of each input of row lengths -> the length of a full row, for inputs of these shapes.

    An input of row lengths is an integer per row, [batch], and its name ends in `lengths` or a similar word. The rows
    are those of the first other input with the same first axis; they run along its first dynamic axis after the first,
    or its second axis where none is dynamic. Without this rule, random lengths would be wrong: operators refuse a
    length beyond the row, and models answer NaN for a row of length 0.
    """
    axes_of = axes.shapes(specs)
    full: dict[str, int] = {}
    for name, spec in specs.items():
        if spec.dtype not in {"int32", "int64"} or len(axes_of[name]) != 1 or not _NAME.search(name):
            continue
        rows = [other for other, shape in axes_of.items() if len(shape) > 1 and shape[0] == axes_of[name][0]]
        if rows:
            after = axes_of[rows[0]][1:]
            full[name] = shapes[rows[0]][1 + next((i for i, axis in enumerate(after) if isinstance(axis, str)), 0)]
    return full
