"""The runner of the original model in PyTorch: what one would serve without a recipe."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from engine.errors import StepError
from engine.kit.runners import Runner

if TYPE_CHECKING:
    import numpy as np

    Tensors = Mapping[str, np.ndarray]


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
