"""Routing: which compiled shape computes an input, and how the input is padded to that shape."""

# Packages carry a copy of this file into the server, so the file imports nothing of this project.

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import prod
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import numpy as np

    Tensors = Mapping[str, np.ndarray]

FREE = -1
"""The number that stands for the model with free shapes; a model with fixed shapes has its index in `fixed`."""
_FREE_COST = 1.25
"""The time of a position with free shapes, in times of a position with fixed shapes: see docs/adr/0037."""


class Routing:
    """The shapes for which a model is compiled, and the choice among them.

    `facts` are JSON values:

    - `inputs`: the axes of each input, a name for a free axis and a number for a fixed axis.
    - `outputs`: for each axis of each output the name of `rows` or `tokens`, or null for another axis.
    - `fixed`: the sizes of the free axes, for each shape that the model is compiled for.
    - `free`: whether the model is compiled for free shapes, too.
    - `rows`: the name of the axis of independent rows; null where a batch is never filled up with further rows.
    - `tokens`: the name of the axis of tokens; null where an input is no row of tokens.
    - `left`: whether tokens are padded on the left.
    - `fill`: the value of each input at padded tokens.
    """

    def __init__(self, facts: Mapping[str, Any]) -> None:
        self.facts = facts
        self.inputs: Mapping[str, Sequence[int | str]] = facts["inputs"]
        self.outputs: Mapping[str, Sequence[str | None]] = facts["outputs"]
        self.fixed: Sequence[Mapping[str, int]] = facts["fixed"]
        self.free: bool = facts["free"]
        self.rows: str | None = facts["rows"]
        self.tokens: str | None = facts["tokens"]
        self.left: bool = facts["left"]
        self.fill: Mapping[str, int] = facts["fill"]

    def sizes(self, shapes: Mapping[str, Sequence[int]]) -> dict[str, int]:
        """Return the size of each free axis, given the shape of each input.

        Raises ValueError for shapes that the model does not have.
        """
        sizes: dict[str, int] = {}
        for name, axes in self.inputs.items():
            shape = shapes[name]
            expected = [sizes.setdefault(axis, size) if isinstance(axis, str) else axis
                        for axis, size in zip(axes, shape, strict=False)]  # fmt: skip
            if list(shape) != expected or len(shape) != len(axes):
                raise ValueError(f"{name} has the shape {list(shape)}; the model takes {list(axes)}")
        return sizes

    def choose(self, sizes: Mapping[str, int]) -> int:
        """Return the index in `fixed` of the shape that computes an input fastest, or FREE.

        The time is taken as the number of computed positions. Raises ValueError where no shape takes the input.
        """
        costs: dict[int, float] = {
            index: prod(fixed.values()) for index, fixed in enumerate(self.fixed) if self._holds(fixed, sizes)
        }
        if self.free:
            costs[FREE] = _FREE_COST * prod(sizes.values())
        if not costs:
            there = ", ".join("x".join(map(str, fixed.values())) for fixed in self.fixed)
            one = ", ".join(f"{axis} {size}" for axis, size in sizes.items())
            raise ValueError(f"no profile takes {one}; the profiles are {there}")
        return min(costs, key=lambda index: (costs[index], index))

    def shapes(self, index: int) -> dict[str, list[int]]:
        """Return the shape of each input in a fixed shape."""
        fixed = self.fixed[index]
        return {
            name: [fixed[axis] if isinstance(axis, str) else axis for axis in axes]
            for name, axes in self.inputs.items()
        }

    def padded(self, arrays: Tensors, index: int) -> dict[str, np.ndarray]:
        """Return inputs of the fixed shape: further tokens have the values of `fill`, further rows repeat the first."""
        import numpy as np

        result = {}
        for name, shape in self.shapes(index).items():
            array, axes = arrays[name], self.inputs[name]
            for place, (axis, size) in enumerate(zip(axes, shape, strict=True)):
                more = size - array.shape[place]
                if more and axis == self.rows:
                    array = np.concatenate([array, np.repeat(array[:1], more, axis=0)])
                elif more:
                    around = [(0, 0)] * array.ndim
                    around[place] = (more, 0) if self.left else (0, more)
                    array = np.pad(array, around, constant_values=self.fill[name])
            result[name] = array
        return result

    def cropped(self, outputs: Tensors, sizes: Mapping[str, int]) -> dict[str, np.ndarray]:
        """Return outputs without the positions that `padded` added."""
        result = {}
        for name, array in outputs.items():
            result[name] = array[tuple(self._kept(axis, sizes) for axis in self.outputs[name])]
        return result

    def _kept(self, axis: str | None, sizes: Mapping[str, int]) -> slice:
        """Return the positions of an output's axis that the input asks for."""
        if axis is None:
            return slice(None)
        return slice(-sizes[axis], None) if axis == self.tokens and self.left else slice(sizes[axis])

    def _holds(self, fixed: Mapping[str, int], sizes: Mapping[str, int]) -> bool:
        """Tell whether an input of these sizes can be padded to a fixed shape."""
        return all(
            size <= fixed[axis] if axis in {self.rows, self.tokens} else size == fixed[axis]
            for axis, size in sizes.items()
        )
