"""The module that a TensorRT build means, `tensorrt` or `tensorrt_rtx`, typed as TensorRT 10."""

# Both have one face. Only what TensorRT-RTX adds is asked for by name: see `trt_builder`. The types are those of the
# package `tensorrt-stubs`; without it they are Any. `tests/runtimes/tensorrt/test_types.py` checks them.

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any, Literal

from engine import distribution
from engine.errors import StepError
from engine.triton_images import parts_of

if TYPE_CHECKING:
    import tensorrt as trt

__all__ = ["Runtime", "check_version", "trt", "use"]

Runtime = Literal["tensorrt", "tensorrt-rtx"]
"""The runtimes of a recipe that take a TensorRT engine. Neither loads the other's."""

_MODULES = {"tensorrt": "tensorrt", "tensorrt-rtx": "tensorrt_rtx"}
_EXTRAS = {
    "tensorrt": f"on the machine with the GPU: {distribution.install('tensorrt')}, or NVIDIA's TensorRT container",
    "tensorrt-rtx": f"{distribution.install('rtx')}: it builds without a GPU",
}


class _Meant:
    """Stands for the module that was last asked for: a worker may build with one after the other."""

    module: Any = None

    def __getattr__(self, name: str) -> Any:
        return getattr(type(self).module, name)


if not TYPE_CHECKING:
    trt = _Meant()


def use(runtime: Runtime) -> str:
    """Let `trt` mean this runtime's module; return its version, as in "10.13.0.35".

    Raises StepError where it is not installed.
    """
    name = _MODULES[runtime]
    try:
        module: Any = importlib.import_module(name)
        # A folder of type stubs alone imports as well, as an empty namespace.
        if not hasattr(module, "Builder"):
            raise ImportError(f"the module {name!r} that is found has no Builder", name=name)  # noqa: TRY301
    except (ImportError, OSError) as error:
        raise StepError(f"{_title(runtime)} is not installed", [str(error)], _EXTRAS[runtime]) from error
    _Meant.module = module
    return str(module.__version__)


def check_version(runtime: Runtime, found: str, wanted: str | None) -> None:
    """Raise StepError where the installed TensorRT is not the recipe's ("10.x", "10.4")."""
    parts = parts_of(wanted or "")
    if parts == tuple(found.split("."))[: len(parts)]:
        return
    package = {"tensorrt": "tensorrt", "tensorrt-rtx": "tensorrt-rtx-cu12"}[runtime]
    raise StepError(
        f"the recipe asks for {_title(runtime)} {wanted}, and {found} is installed",
        hint=f"pip install '{package}=={'.'.join(parts)}.*', or change tensorrt.version",
    )


def _title(runtime: Runtime) -> str:
    return {"tensorrt": "TensorRT", "tensorrt-rtx": "TensorRT-RTX"}[runtime]
