"""Runners: whatever answers inputs with outputs behind one face; those of ONNX Runtime."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from engine.errors import StepError
from engine.kit import ort

if TYPE_CHECKING:
    import numpy as np

    Tensors = Mapping[str, np.ndarray]

PLAN = "model.plan"
"""A TensorRT engine in an artifact."""


@dataclass(frozen=True)
class Runner:
    """A model, ready to run.

    `run` answers inputs with outputs by name. `prepare` does all that need not be timed and returns a call for the
    same inputs. `active` is the context in which prepared calls are made.
    """

    name: str
    run: Callable[[Tensors], dict[str, np.ndarray]]
    prepare: Callable[[Tensors], Callable[[], object]]
    active: Callable[[], AbstractContextManager[object]] = nullcontext


def built(directory: Path, *, name: str = "built", threads: int = 0) -> Runner:
    """Return the runner of a built model, with the session options that it was saved for.

    Raises StepError for a TensorRT engine: what runs one has to be tried on a GPU first.
    """
    if (directory / PLAN).is_file():
        raise StepError(
            "Running a TensorRT engine is not supported yet: validate and bench of one come with the GPU backend",
            ["the engine is built and kept: `recipe show` says where it is"],
            "build up to it with --to trt-build, or use runtime: onnxruntime",
        )
    return _onnxruntime(directory, name=name, threads=threads)


def plain_onnxruntime(directory: Path, *, name: str, threads: int) -> Runner:
    """Return the runner of an exported model as a user would open it: every optimisation that is on by default."""
    return _onnxruntime(directory, name=name, threads=threads)


def _onnxruntime(directory: Path, *, name: str, threads: int) -> Runner:
    session = ort.session(directory, threads=threads)
    names = [value.name for value in session.get_outputs()]
    asked = [value.name for value in session.get_inputs()]

    def prepare(inputs: Tensors) -> Callable[[], object]:
        ort.run(session, inputs)  # says clearly what is wrong, which a bare call does not
        feed = {name: inputs[name] for name in asked}
        return lambda: session.run(names, feed)

    return Runner(name, lambda inputs: ort.run(session, inputs), prepare)
