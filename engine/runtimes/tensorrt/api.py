"""The module that a TensorRT build means, `tensorrt` or `tensorrt_rtx`, typed as TensorRT 10."""

# Both have one face. Only what TensorRT-RTX adds is asked for by name: see `trt_builder`. The types are those of the
# package `tensorrt-stubs`; without it they are Any. `tests/runtimes/tensorrt/test_types.py` checks them.

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Annotated, Any

from pydantic import AfterValidator

from engine.errors import StepError
from engine.runtimes import registry, versions
from engine.runtimes.tensorrt.spec import Engines

if TYPE_CHECKING:
    import tensorrt as trt

__all__ = ["EngineRuntime", "check_version", "meant", "trt", "use"]


class _Meant:
    """Stands for the module that was last asked for: a worker may build with one after the other."""

    module: Any = None

    def __getattr__(self, name: str) -> Any:
        return getattr(type(self).module, name)


if not TYPE_CHECKING:
    trt = _Meant()


def meant(runtime: str) -> Engines:
    """Return the runtime of this name, one of those that take engines. Neither loads the other's."""
    found = registry.find(runtime)
    if not isinstance(found, Engines):
        raise StepError(f"{runtime} takes no TensorRT engines", ["tensorrt and tensorrt-rtx do"])
    return found


def _known(runtime: str) -> str:
    try:
        return meant(runtime).name
    except StepError as error:
        raise ValueError(error.what) from error


EngineRuntime = Annotated[str, AfterValidator(_known)]
"""The name of a runtime that takes engines, as a field."""


def package(runtime: str) -> str:
    """Return what pip installs for a runtime."""
    return meant(runtime).package


def use(runtime: str) -> str:
    """Let `trt` mean this runtime's module; return its version, as in "10.13.0.35".

    Raises StepError where it is not installed.
    """
    wanted = meant(runtime)
    name = wanted.module
    try:
        module: Any = importlib.import_module(name)
        # A folder of type stubs alone imports as well, as an empty namespace.
        if not hasattr(module, "Builder"):
            raise ImportError(f"the module {name!r} that is found has no Builder", name=name)  # noqa: TRY301
    except (ImportError, OSError) as error:
        raise StepError(f"{wanted.title} is not installed", [str(error)], wanted.install) from error
    _Meant.module = module
    return str(module.__version__)


def check_version(runtime: str, installed: str, requested: str | None) -> None:
    """Raise StepError where the installed TensorRT is not the version that the recipe requests ("10.x", "10.4")."""
    if requested is None or versions.agrees(requested, installed):
        return
    engines = meant(runtime)
    parts = ".".join(versions.parts(requested))
    raise StepError(
        f"the recipe asks for {engines.title} {requested}, and {installed} is installed",
        hint=f"pip install '{engines.package}=={parts}.*', or change tensorrt.version",
    )
