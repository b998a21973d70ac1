"""Runner: one interface to a model that is ready to run, whichever runtime runs it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from contextlib import AbstractContextManager, nullcontext
from typing import TYPE_CHECKING, NamedTuple

from engine.errors import StepError

if TYPE_CHECKING:
    import numpy as np

    from engine.kit.onnx.onnx_files import Input
    from engine.runtimes.cuda_graph import BoundCall
    from engine.runtimes.device_times import DeviceTimes

    Tensors = Mapping[str, np.ndarray]


def refuse_missing(names: Iterable[str], inputs: Tensors) -> None:
    """Raise StepError where `inputs` lacks an input of the model."""
    missing = [name for name in names if name not in inputs]
    if missing:
        raise StepError(
            f"The model asks for inputs that are not there: {', '.join(missing)}", [f"there are: {', '.join(inputs)}"]
        )


class Runner(NamedTuple):
    """A model that is ready to run, with the functions that run and measure it.

    `run` takes inputs by name and returns outputs by name. `prepare` takes inputs, does all work that is not timed, and
    returns a function that computes the outputs of the inputs and waits for the outputs. Prepared calls are made inside
    the context manager that `active` returns.
    """

    name: str
    run: Callable[[Tensors], dict[str, np.ndarray]]
    prepare: Callable[[Tensors], Callable[[], object]]
    active: Callable[[], AbstractContextManager[object]] = nullcontext
    takes: Callable[[Mapping[str, tuple[int, ...]]], bool] = lambda _: True
    """Tells whether the model takes inputs of the shapes in a mapping from an input's name to its shape.

    An engine takes the shapes that its profiles allow.
    """
    inputs: Mapping[str, Input] | None = None
    """The inputs of a model whose `work` depends on the shapes of its inputs alone; None for any other model."""
    work: Callable[[Tensors], Mapping[str, int]] | None = None
    """Counts the multiplications of one run by the precision of the kernels; None where the runtime cannot tell."""
    device_times: Callable[[Tensors], DeviceTimes] | None = None
    """Measures the times of one call on the GPU by CUDA events; None where the runtime cannot, and on CPUs."""
    capture: Callable[[Tensors], BoundCall] | None = None
    """Captures a call into a CUDA graph, or raises StepError and is of no use any more; None for a model without."""
