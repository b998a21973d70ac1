"""CUDA graphs: the built model in a captured graph as a contender beside the same model without, at one shape."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from engine.errors import StepError
from engine.kit.bench.contenders import BuiltModel, unmeasured
from engine.kit.bench.interleaving import Contender
from engine.kit.bench.report import Unmeasured, in_words
from engine.kit.inputs import cases
from engine.runtimes.recipes import IN_PROCESS
from engine.runtimes.runner import BoundCall

if TYPE_CHECKING:
    import numpy as np

    from engine.runtimes.runner import Runner

    Tensors = Mapping[str, np.ndarray]

_TOLERANCE = 1e-2
"""The greatest difference between two answers of one model, as a share of the output's largest number."""


def added(
    contenders: Sequence[Contender],
    graphed: BuiltModel,
    inputs: Tensors,
    shape: Mapping[str, int],
    *,
    by_default: bool,
    stated: Collection[str] = (),
) -> tuple[list[Contender], list[Unmeasured]]:
    """Return the contenders and the built model in a CUDA graph; without it, and with the reason, where that fails.

    The first contender is the built model without a graph. With `by_default` the one with the graph takes its place as
    the recipe's own model, and stands before it. `graphed` is loaded for this shape alone, since a session is of no use
    any more after a capture that fails. A graph takes part only if it answers as the model does without one. The
    values of the inputs `stated` are not changed for that.
    """
    plain, *others = contenders
    name = f"{plain.runtime}-graph"
    try:
        call = _checked(graphed.runner(), inputs, stated)
    except (StepError, ImportError, OSError) as error:
        why = StepError(error.what, error.facts) if isinstance(error, StepError) else error  # hints are for the user
        return list(contenders), [unmeasured(name, why, shape)]
    print(f"CUDA graph for {in_words(shape)}: {call.graph}")
    with_graph = Contender(runtime=name, via=IN_PROCESS, ours=True, prepare=lambda _: call.run, graph=call.graph)
    if by_default:
        without = replace(plain, runtime=f"{plain.runtime}-no-graph", ours=False, other_way=True)
        return [with_graph, without, *others], []
    return [plain, replace(with_graph, ours=False, other_way=True), *others], []


def preferred(
    contender: Contender, built: BuiltModel, inputs: Tensors, shape: Mapping[str, int], *, stated: Collection[str]
) -> Contender:
    """Return the contender in a CUDA graph, as `bench` runs it by default; itself where none can be captured.

    `built` is the contender's model. `stated` are the inputs whose values profiles state.
    """
    graphed = built.graphed()
    if graphed is None:
        return contender
    (chosen, *_), _ = added([contender], graphed, inputs, shape, by_default=True, stated=stated)
    return chosen


def _checked(runner: Runner, inputs: Tensors, stated: Collection[str]) -> BoundCall:
    """Capture a graph, and return it with `inputs` in its buffers. Raises StepError where its answers differ."""
    if runner.capture is None:
        raise StepError("the runtime captures no CUDA graph")
    call = runner.capture(inputs)
    for given in (_others(inputs, stated), inputs):
        captured = call.answers(given)
        errors = {name: cases.relative_error(array, captured[name]) for name, array in runner.run(given).items()}
        differ = [name for name, error in errors.items() if error > _TOLERANCE]
        if differ:
            raise StepError("answers differ", [f"with and without the CUDA graph: {', '.join(differ)}"])
    return call


def _others(inputs: Tensors, stated: Collection[str]) -> Tensors:
    """Return the inputs with each value moved by one along the first axis behind the batch that is longer than 1."""
    import numpy as np

    def moved(array: np.ndarray) -> np.ndarray:
        axis = next((axis for axis, size in enumerate(array.shape) if axis and size > 1), None)
        return np.roll(array, 1, axis)

    return {name: array if name in stated else moved(array) for name, array in inputs.items()}
