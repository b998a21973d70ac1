"""Axes of a model's inputs: names, sizes that follow from other axes, and sizes that a recipe states by input."""

from __future__ import annotations

import ast
import json
import math
import operator
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from fractions import Fraction
from typing import Protocol, TypeVar

Axis = int | str
Shape = Sequence[Axis]
"""For each axis its size, or its name where the axis may have any size.

The name may be an expression, as exporters write it: `past_sequence_length + 1`.
"""
T = TypeVar("T")

_Operation = Callable[[Fraction, Fraction], Fraction | int]
_OPERATIONS: Mapping[type[ast.operator], _Operation] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.FloorDiv: operator.floordiv,
    ast.Mod: operator.mod,
}
_CALLS: Mapping[str, Callable[..., Fraction | int]] = {
    "floor": math.floor, "ceiling": math.ceil, "ceil": math.ceil, "Max": max, "Min": min, "max": max, "min": min,
}  # fmt: skip
_NAMELESS = r"(?a)[\s?*_-]*|-?[0-9]+|None|none|null|unk|unknown|dynamic"
"""Matches the texts that exporters write for "any size": `?`, `-1`, `None`. Two such axes are not the same axis."""
_PLAIN = r"(?i)(?!(?:yes|no|on|off|true|false|null)$)[a-z_][a-z0-9_.-]*"
"""Matches the names that YAML reads as texts without quotation marks."""
_PLACE = r"(?P<name>.+)\[(?P<index>[0-9]{1,2})\]"


class Shaped(Protocol):
    """An input of a model: a value with a shape."""

    @property
    def shape(self) -> Shape: ...


def shapes(inputs: Mapping[str, Shaped]) -> dict[str, Shape]:
    """Return the shape of each input."""
    return {name: value.shape for name, value in inputs.items()}


def names_nothing(text: str) -> bool:
    """Tell whether the name that a model gives an axis only says that the axis may have any size."""
    return bool(re.fullmatch(_NAMELESS, text))


def free(shapes: Mapping[str, Shape]) -> tuple[str, ...]:
    """Return the axes of any size whose sizes do not follow from other axes, in the order of the inputs."""
    named = dict.fromkeys(axis for shape in shapes.values() for axis in shape if isinstance(axis, str))
    return tuple(axis for axis in named if not _follows(axis, named))


def follow(shapes: Mapping[str, Shape]) -> tuple[str, ...]:
    """Return the expressions among the names of axes: `past_sequence_length + 1`, where the sum's axis is an axis."""
    named = dict.fromkeys(axis for shape in shapes.values() for axis in shape if isinstance(axis, str))
    return tuple(axis for axis in named if _follows(axis, named))


def extent(axis: Axis, sizes: Mapping[str, int]) -> int | None:
    """Return the size of an axis, given the sizes of axes by name; None where the sizes do not tell it."""
    if isinstance(axis, int):
        return axis
    if axis in sizes:
        return sizes[axis]
    tree = _parsed(axis)
    try:
        size = Fraction(-1 if tree is None else _value(tree, sizes))
    except (KeyError, TypeError, ArithmeticError):
        return None
    return int(size) if size.denominator == 1 and size >= 0 else None


def as_key(axis: str) -> str:
    """Return the name of an axis as a key in YAML: in quotation marks where YAML would not read it as a text."""
    return axis if re.fullmatch(_PLAIN, axis) else json.dumps(axis, ensure_ascii=False)


def place(name: str, index: int) -> str:
    """Return the key of a profile that stands for an axis by its input and index: `x[2]` is the third axis of `x`."""
    return f"{name}[{index}]"


def input_of(key: str) -> str | None:
    """Return the name of the input in a key such as `x[2]`; None for the name of an axis."""
    match = re.fullmatch(_PLACE, key)
    return match["name"] if match else None


def by_name(sizes: Mapping[str, T], shapes: Mapping[str, Shape]) -> dict[str, T]:
    """Return sizes by the name of the axis, where `sizes` may have keys such as `x[2]`.

    Sizes of axes that the model fixes, and of axes that follow from other axes, are left out. A key for which the model
    has no input or no axis stays as it is.
    """
    named: dict[str, T] = {}
    for key, axis, value in located(sizes, shapes):
        if axis is None:
            named[key] = value
        elif isinstance(axis, str) and axis not in follow(shapes):
            named[axis] = value
    return named


def located(sizes: Mapping[str, T], shapes: Mapping[str, Shape]) -> Iterator[tuple[str, Axis | None, T]]:
    """Yield each key of `sizes`, the axis of the model that the key stands for, and the size.

    The axis is an int where the model fixes its size, and None where the model has no such axis. The name of an input
    with one axis stands for the axis, if no axis has the name.
    """
    every = {axis for shape in shapes.values() for axis in shape if isinstance(axis, str)}
    for key, value in sizes.items():
        match = re.fullmatch(_PLACE, key)
        name, index = (match["name"], int(match["index"])) if match else (key, 0)
        shape = shapes.get(name, ())
        if key in every:
            yield key, key, value
        elif match or len(shape) == 1:
            yield key, shape[index] if index < len(shape) else None, value
        else:
            yield key, None, value


def _follows(axis: str, named: Mapping[str, object]) -> bool:
    """Tell whether an axis is an expression whose variables are all names of axes."""
    tree = _parsed(axis)
    if tree is None or isinstance(tree, ast.Name):
        return False
    variables = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)} - _CALLS.keys()
    try:
        _value(tree, dict.fromkeys(variables, 1))
    except (KeyError, TypeError):
        return False
    except ArithmeticError:
        pass  # a division by zero depends on the sizes
    return bool(variables) and variables <= named.keys()


def _parsed(axis: str) -> ast.expr | None:
    try:
        return ast.parse(axis.strip(), mode="eval").body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None


def _value(node: ast.expr, sizes: Mapping[str, int]) -> Fraction | int:
    match node:
        case ast.Constant(value=int(value)):
            return Fraction(value)
        case ast.Name(id=name):
            return Fraction(sizes[name])
        case ast.UnaryOp(op=ast.USub(), operand=operand):
            return -_value(operand, sizes)
        case ast.BinOp(left=left, op=op, right=right):
            return _OPERATIONS[type(op)](Fraction(_value(left, sizes)), Fraction(_value(right, sizes)))
        case ast.Call(func=ast.Name(id=name), args=arguments):
            return _CALLS[name](*(_value(argument, sizes) for argument in arguments))
    raise KeyError(ast.dump(node))
