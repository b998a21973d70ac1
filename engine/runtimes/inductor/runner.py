"""Runners of compiled models: native code in this process, on the CPU or on the GPU that it is compiled for."""

from __future__ import annotations

import contextlib
import faulthandler
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from engine.errors import StepError
from engine.runtimes import devices
from engine.runtimes.inductor import passport as passports
from engine.runtimes.inductor.passport import Pt2Passport
from engine.runtimes.runner import Runner, refuse_missing
from engine.text import reasons

if TYPE_CHECKING:
    import numpy as np
    import torch

    from engine.runtimes.devices import CudaGpu
    from engine.runtimes.execution import Execution

    Tensors = Mapping[str, np.ndarray]

_NAME = "model"
"""The name that AOTInductor gives the only model of a file."""
_LOADING = 300
"""The seconds after which a process that loads a model for a GPU is ended: on one GPU loading never came to an end."""


def runner(
    directory: Path, execution: Execution, *, name: str, threads: int = 0, new_tokens: int | None = None
) -> Runner:
    """Return the runner of the compiled model in `directory`; with 0 threads PyTorch chooses their number.

    Raises StepError where the passport names another machine, or where PyTorch cannot load the model.
    """
    del new_tokens  # no model that generates text is compiled
    passport = passports.load(directory)
    gpu = None if execution.hardware is None else devices.chosen(execution.hardware)
    passports.refuse_elsewhere(passport, passports.here(gpu))
    model = _Model(_loaded(directory / passports.MODEL, gpu), passport, gpu, threads)
    return Runner(name, model.run, model.prepare, model.active, takes=lambda shapes: not passport.misfits(shapes))


class _Model:
    """A loaded model, and the types and shapes that it takes."""

    def __init__(self, loaded: Any, passport: Pt2Passport, gpu: CudaGpu | None, threads: int) -> None:
        self._loaded, self._passport, self._gpu, self._threads = loaded, passport, gpu, threads

    def run(self, inputs: Tensors) -> dict[str, np.ndarray]:
        """Return the outputs of one call by name. Raises StepError for inputs that the model does not take."""
        with self.active():
            answers = self._call(self._fed(inputs))
        return {name: each.cpu().numpy() for name, each in zip(self._passport.outputs, answers, strict=True)}

    def prepare(self, inputs: Tensors) -> Callable[[], object]:
        """Return a call that computes the outputs of inputs that lie on the device, and waits for them."""
        import torch

        tensors = self._fed(inputs)
        with self.active():
            self._call(tensors)
        gpu = self._gpu
        if gpu is None:
            return lambda: self._call(tensors)

        def call() -> None:
            self._call(tensors)
            torch.cuda.synchronize(gpu.index)

        return call

    @contextlib.contextmanager
    def active(self) -> Iterator[None]:
        """Let PyTorch and the model's own code use the stated number of threads in the `with` block."""
        import torch

        before = torch.get_num_threads()
        torch.set_num_threads(self._threads or before)
        try:
            yield
        finally:
            torch.set_num_threads(before)

    def _call(self, tensors: list[torch.Tensor]) -> list[torch.Tensor]:
        import torch

        with torch.inference_mode():
            try:
                return self._loaded.run(tensors)  # type: ignore[no-any-return]
            except RuntimeError as error:
                raise StepError("the compiled model cannot run on these inputs", reasons.facts(error)) from error

    def _fed(self, inputs: Tensors) -> list[torch.Tensor]:
        """Return the model's inputs in their order, in its types, on its device. Raises StepError for other shapes."""
        import torch

        specs = self._passport.inputs
        refuse_missing(specs, inputs)
        if lines := self._passport.misfits({name: inputs[name].shape for name in specs}):
            raise StepError("the compiled model takes no inputs of these shapes", lines, "add a profile")
        device = "cpu" if self._gpu is None else f"cuda:{self._gpu.index}"
        return [
            torch.from_numpy(inputs[name].astype(spec.dtype, copy=False)).to(device) for name, spec in specs.items()
        ]


def _loaded(path: Path, gpu: CudaGpu | None) -> Any:
    """Return PyTorch's loader of a compiled model, which runs it.

    `torch._inductor.aoti_load_package` wraps the same loader. Before, it compiles a probe to compare this CPU with the
    model's: it needs a C++ compiler, and waits for locks in the user's cache. The passport makes that needless. On a
    GPU, a process that hangs is ended. Raises StepError where PyTorch cannot load the model.
    """
    import torch

    if gpu is not None:
        faulthandler.dump_traceback_later(_LOADING, exit=True)
    try:
        return torch._C._aoti.AOTIModelPackageLoader(  # noqa: SLF001 - as `torch._inductor.package.load_package` calls it
            str(path),
            _NAME,
            False,  # noqa: FBT003 - it takes no names: threads may call it
            1,
            -1 if gpu is None else gpu.index,
        )
    except RuntimeError as error:
        raise StepError("PyTorch cannot load the compiled model", reasons.facts(error), "build it again") from error
    finally:
        if gpu is not None:
            faulthandler.cancel_dump_traceback_later()
