"""Runners: whatever answers inputs with outputs - ONNX Runtime, PyTorch - behind one face."""

from __future__ import annotations

import importlib.util
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


def pytorch(
    checkpoint: Path, task: str, *, name: str, threads: int, num_labels: int | None, random_head: bool
) -> Runner:
    """Return the runner of the original in PyTorch: eager, fp32. Raises StepError where torch is not installed."""
    if importlib.util.find_spec("torch") is None or importlib.util.find_spec("transformers") is None:
        raise StepError(
            "Measuring against PyTorch needs torch and transformers, and they are not installed",
            ["bench.against asks for runtime: pytorch"],
            "pip install 'recipe[cpu]', or take pytorch out of bench.against",
        )
    import torch

    from engine.kit import torch_models

    module = torch_models.load(checkpoint, task, num_labels=num_labels, random_head=random_head)

    def prepare(inputs: Tensors) -> Callable[[], object]:
        tensors = [torch.from_numpy(inputs[name]) for name in module.input_names]

        def call() -> object:
            with torch.inference_mode():
                return module(*tensors)

        return call

    return Runner(name, lambda inputs: torch_models.call(module, inputs), prepare, lambda: _TorchThreads(threads))


def _onnxruntime(directory: Path, *, name: str, threads: int) -> Runner:
    session = ort.session(directory, threads=threads)
    names = [value.name for value in session.get_outputs()]
    asked = [value.name for value in session.get_inputs()]

    def prepare(inputs: Tensors) -> Callable[[], object]:
        ort.run(session, inputs)  # says clearly what is wrong, which a bare call does not
        feed = {name: inputs[name] for name in asked}
        return lambda: session.run(names, feed)

    return Runner(name, lambda inputs: ort.run(session, inputs), prepare)


class _TorchThreads:
    """So many threads for PyTorch, and then as many as before: the process goes on to other jobs."""

    def __init__(self, threads: int) -> None:
        self.threads = threads
        self.before = threads

    def __enter__(self) -> None:
        import torch

        self.before = torch.get_num_threads()
        torch.set_num_threads(self.threads)

    def __exit__(self, *reason: object) -> None:
        import torch

        torch.set_num_threads(self.before)
