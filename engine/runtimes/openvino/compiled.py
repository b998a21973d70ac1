"""Compiled: models that OpenVINO compiled for the CPU of this machine, for each of their shapes, and calls of them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

from engine.errors import StepError
from engine.runtimes.openvino import ir
from engine.runtimes.openvino.ir import UnfitModelError
from engine.runtimes.routing import FREE
from engine.runtimes.runner import refuse_missing
from engine.text import reasons

if TYPE_CHECKING:
    import numpy as np
    import openvino

    Tensors = Mapping[str, np.ndarray]

LATENCY = {"NUM_STREAMS": "1", "PERFORMANCE_HINT": "LATENCY"}
"""The options for one call at a time.

No option sets the precision of floating-point operators, because Triton's OpenVINO backend passes none for fp32. By
default OpenVINO computes such operators in bf16 on CPUs that have instructions for bf16.
"""
FP32 = {"INFERENCE_PRECISION_HINT": "f32"}
"""The option with which floating-point operators are computed in fp32 on every CPU."""


def compiled(
    model: openvino.Model, *, threads: int = 0, options: Mapping[str, str] = LATENCY
) -> openvino.CompiledModel:
    """Compile a model for the CPU of this machine; with 0 threads, OpenVINO chooses their number.

    Raises UnfitModelError where OpenVINO cannot compile the model.
    """
    import openvino

    try:
        return openvino.Core().compile_model(model, "CPU", with_threads(options, threads))
    except RuntimeError as error:
        raise UnfitModelError("OpenVINO cannot compile the model for this CPU", reasons.facts(error)) from error


def with_threads(options: Mapping[str, str], threads: int) -> dict[str, str]:
    """Return the options of OpenVINO for a number of threads; with 0 threads, OpenVINO chooses their number."""
    return {**options, **({"INFERENCE_NUM_THREADS": str(threads)} if threads else {})}


class Calls:
    """Calls of a model that is compiled for the CPU of this machine.

    Inputs and outputs have the names that they have before the model is compiled. A compiled model also has the names
    of tensors that OpenVINO has merged with an input or an output.
    """

    def __init__(
        self,
        model: openvino.Model,
        *,
        threads: int = 0,
        options: Mapping[str, str] = LATENCY,
        compile: Callable[..., openvino.CompiledModel] = compiled,  # noqa: A002 - the field's term
    ) -> None:
        """Compile a model with `compile`, a function with the arguments of `compiled`. Raises StepError as it does."""
        self._inputs = [value.any_name for value in model.inputs]
        self._outputs = [value.any_name for value in model.outputs]
        self._model = compile(model, threads=threads, options=options)
        self._request = self._model.create_infer_request()

    def run(self, inputs: Tensors) -> dict[str, np.ndarray]:
        """Return the outputs of one call by name. Raises StepError where OpenVINO cannot run the model on `inputs`."""
        fed = self._fed(inputs)
        try:
            results = self._request.infer(fed)
        except RuntimeError as error:
            raise _unfit(self._named(fed), reasons.facts(error)) from error
        return {name: results[index].copy() for index, name in enumerate(self._outputs)}

    def prepare(self, inputs: Tensors) -> Callable[[], object]:
        """Return a call that computes the outputs of the inputs. Raises StepError as `run` does.

        The inputs are bound once, as in a prepared call of ONNX Runtime. The outputs of a call hold until the next one.
        """
        import openvino

        self.run(inputs)  # `infer` alone would give no clear error
        request = self._model.create_infer_request()
        for index, array in self._fed(inputs).items():
            request.set_input_tensor(index, openvino.Tensor(array, shared_memory=False))
        return lambda: request.infer(share_outputs=True)

    def _fed(self, inputs: Tensors) -> dict[int, np.ndarray]:
        """Return the model's inputs among `inputs` by index, in the model's types.

        Raises StepError where an input is missing, and for an input of a wrong shape, which OpenVINO itself does not
        always refuse.
        """
        import openvino

        refuse_missing(self._inputs, inputs)
        fed, wrong = {}, []
        for index, (name, value) in enumerate(zip(self._inputs, self._model.inputs, strict=True)):
            fed[index] = inputs[name].astype(value.element_type.to_dtype(), copy=False)
            shape = value.get_partial_shape()
            if not shape.compatible(openvino.PartialShape(fed[index].shape)):
                wrong.append(f"{name} has the shape {shape}")
        if wrong:
            raise _unfit(self._named(fed), wrong)
        return fed

    def _named(self, fed: Mapping[int, np.ndarray]) -> dict[str, np.ndarray]:
        return {self._inputs[index]: array for index, array in fed.items()}


def _unfit(fed: Tensors, facts: Sequence[str]) -> StepError:
    """Return the error for inputs on which a model cannot run."""
    shapes = [f"{name}: {array.dtype}{list(array.shape)}" for name, array in fed.items()]
    hint = "give inputs of the shapes and numbers that the model is made for: samples, or narrower profiles"
    return StepError("OpenVINO cannot run the model on these inputs", [*facts, *shapes], hint)


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
