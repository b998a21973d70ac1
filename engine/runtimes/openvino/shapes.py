"""Shapes: a model compiled for each of its fixed shapes and for free shapes, and the one that computes an input."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

from engine.errors import StepError
from engine.runtimes.openvino import ir
from engine.runtimes.openvino.compiled import Calls
from engine.runtimes.routing import FREE
from engine.runtimes.runner import refuse_missing

if TYPE_CHECKING:
    import numpy as np
    import openvino

    from engine.runtimes.openvino.compiled import Tensors


class Shapes:
    """A model with one or several shapes; each shape is compiled when the first input needs it."""

    def __init__(self, model: openvino.Model, compile: Callable[[openvino.Model], Calls]) -> None:  # noqa: A002 - the field's term
        self._model, self._compile = model, compile
        self._routing = ir.routing(model)
        self._calls: dict[int, Calls] = {}
        if self._routing is None:
            self._of(FREE)  # a model that cannot be compiled fails here

    def takes(self, shapes: Mapping[str, Sequence[int]]) -> bool:
        """Tell whether the model takes inputs of these shapes."""
        if self._routing is None:
            return True
        try:
            self._routing.choose(self._routing.sizes(shapes))
        except ValueError:
            return False
        return True

    def fed(self, inputs: Tensors) -> Tensors:
        """Return the inputs as they are computed: padded to a fixed shape where the model has one for them."""
        index, _ = self._choose(inputs)
        return inputs if self._routing is None or index == FREE else self._routing.padded(inputs, index)

    def run(self, inputs: Tensors) -> dict[str, np.ndarray]:
        """Return the outputs of one call by name. Raises StepError for inputs that the model cannot run on."""
        index, sizes = self._choose(inputs)
        if self._routing is None or index == FREE:
            return self._of(FREE).run(inputs)
        outputs = self._of(index).run(self._routing.padded(inputs, index))
        return self._routing.cropped(outputs, sizes)

    def prepare(self, inputs: Tensors) -> Callable[[], object]:
        """Return a call that computes the outputs of the inputs; padding is part of the call."""
        index, sizes = self._choose(inputs)
        if self._routing is not None and index != FREE and self._routing.fixed[index] != sizes:
            self.run(inputs)  # compiles the model, and raises an error for wrong inputs
            return lambda: self.run(inputs)
        return self._of(index).prepare(inputs)

    def _choose(self, inputs: Tensors) -> tuple[int, dict[str, int]]:
        """Return the index of the shape that computes the inputs, and the sizes of the inputs' axes."""
        refuse_missing([value.any_name for value in self._model.inputs], inputs)
        if self._routing is None:
            return FREE, {}
        try:
            sizes = self._routing.sizes({name: inputs[name].shape for name in self._routing.inputs})
            return self._routing.choose(sizes), sizes
        except ValueError as error:
            raise StepError(f"OpenVINO cannot run the model on these inputs: {error}", hint="add a profile") from error

    def _of(self, index: int) -> Calls:
        """Return the calls of the model for a shape."""
        if index not in self._calls:
            fixed = self._routing is not None and index != FREE
            shapes = self._routing.shapes(index) if self._routing is not None and fixed else {}
            self._calls[index] = self._compile(ir.reshaped(self._model, shapes) if fixed else self._model)
        return self._calls[index]
