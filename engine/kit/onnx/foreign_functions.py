"""Functions and settings of other packages that this program changes: what memory needs, and what has no other way."""

# Nothing else in this program assigns to a module of another package, except what the trace of a worker needs
# (`builder/audit.py`). tests/kit/onnx/test_foreign_functions.py compares the functions with the digests below: somebody
# then looks at what a release has changed.

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import reduce
from typing import Any


@dataclass(frozen=True)
class ForeignFunction:
    """A function of another package that `replaced` replaces for a while."""

    module: str
    name: str
    """The name in the module; for a method, the names of the class and of the method, with a dot between them."""
    tried: str
    """The versions of the package with which the replacement was tried."""
    digest: str
    """The digest of the function's source then; of its docstring, which has the signature, if it is native."""

    def place(self) -> tuple[Any, str]:
        """Return the module or the class that has the function, and the function's name there."""
        *outer, name = self.name.split(".")
        return reduce(getattr, outer, importlib.import_module(self.module)), name


# onnx maps no external data: `to_array` copies it into the tensor, and refuses absolute paths. It learnt to read
# external data at all in onnx/onnx pull request 3630; that it changes the tensor is issue 8471. No issue is known that
# asks for a mapping.
TO_ARRAY = ForeignFunction("onnx.numpy_helper", "to_array", "onnx 1.23.2", "c2ef21e196f36d74")

# PyTorch's TorchScript exporter holds a model three times: as tensors, as a message and as the message's bytes
# (pytorch/pytorch issue 61263, closed without a change to these two). Its shape inference keeps a copy of each weight
# that the graph transposes (pull request 101148). The exporter that follows it, `dynamo=True`, writes other graphs.
EXPORT_ONNX = ForeignFunction("torch._C", "Graph._export_onnx", "torch 2.13.0", "453c8beede8b06c8")
INFER_SHAPES = ForeignFunction(
    "torch._C", "_jit_pass_onnx_graph_shape_type_inference", "torch 2.13.0", "7c1090aa2254404e"
)

FUNCTIONS = (TO_ARRAY, EXPORT_ONNX, INFER_SHAPES)


@contextmanager
def replaced(function: ForeignFunction, by: Callable[[Callable[..., Any]], Callable[..., Any]]) -> Iterator[None]:
    """Replace a function within the context by what `by` returns for it."""
    owner, name = function.place()
    original = getattr(owner, name)
    setattr(owner, name, by(original))
    try:
        yield
    finally:
        setattr(owner, name, original)


def compile_in_this_process(compiler: str, shapes: int) -> None:
    """Let torch.compile start no process of its own and use a C++ compiler, for at most so many shapes of a module.

    Its documentation has these settings assigned; the arguments of torch.compile take either them or a mode.
    """
    from torch._dynamo import config as tracing
    from torch._inductor import config as compilers

    compilers.compile_threads = 1
    compilers.cpp.cxx = (compiler,)
    tracing.recompile_limit = tracing.accumulated_recompile_limit = shapes


def use_tensorrt_rtx(rtx: bool) -> None:  # noqa: FBT001
    """Let Polygraphy run TensorRT-RTX; Polygraphy reads the setting when its TensorRT backend is first imported."""
    from polygraphy import config

    config.USE_TENSORRT_RTX = rtx


def speak_of_errors_alone() -> None:
    """Let Polygraphy log errors and nothing else."""
    from polygraphy.logger import G_LOGGER

    G_LOGGER.module_severity = G_LOGGER.ERROR
