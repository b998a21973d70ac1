"""Pipeline: passes change a model one after another, and an error names the pass and the passes before it."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Concatenate, ParamSpec, TypeVar

from engine.errors import StepError
from engine.kit.onnx import ir_models
from engine.text import reasons

if TYPE_CHECKING:
    import onnx
    import onnx_ir as ir

P = ParamSpec("P")
R = TypeVar("R")


class Pipeline:
    """A model, and the names of the passes that have changed it.

    A pass is a function whose first parameter is the model that it changes. The name of a pass consists of the names of
    its module and of its function, for example `linear_layers.split`.
    """

    def __init__(self, model: ir.Model) -> None:
        self.model = model
        self.passes: list[str] = []

    def run(self, change: Callable[Concatenate[ir.Model, P], R], *args: P.args, **kwargs: P.kwargs) -> R:
        """Run a pass, and return what its function returns. Raises StepError where the pass fails."""
        with self._pass(f"{change.__module__.rpartition('.')[2]}.{change.__name__}"):
            return change(self.model, *args, **kwargs)

    def run_tool(self, name: str, change: Callable[[onnx.ModelProto], onnx.ModelProto]) -> None:
        """Run as a pass another package's tool, which takes a message and returns the changed message."""
        with self._pass(name):
            self.model = ir_models.of(change(ir_models.proto(self.model)))

    @contextlib.contextmanager
    def _pass(self, name: str) -> Iterator[None]:
        """Note a pass as run; add the names of the pass and of the passes before it to the facts of an error."""
        place = [f"in the pass {name}", f"passes before it: {', '.join(self.passes) or 'none'}"]
        try:
            yield
        except StepError as error:
            raise StepError(error.what, [*error.facts, *place], error.hint) from error
        except Exception as error:
            raise StepError(
                "The graph of the model could not be changed",
                [*reasons.facts(error), *place],
                "please report the model together with this message",
            ) from error
        self.passes.append(name)
