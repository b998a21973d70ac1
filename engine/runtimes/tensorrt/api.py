"""API of TensorRT: the name `trt` stands for the module `tensorrt` or `tensorrt_rtx`, whichever the runtime needs."""

# Both modules have the same classes. TensorRT-RTX has additional classes and methods, which `builder` and `runner` look
# up by name. The types are those of the package `tensorrt-stubs`, which tests/runtimes/tensorrt/test_types.py checks;
# without the package the types are Any.

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Annotated, Any

from pydantic import AfterValidator

from engine.errors import StepError
from engine.runtimes import registry
from engine.runtimes.tensorrt import library_version
from engine.runtimes.tensorrt.spec import Engines

if TYPE_CHECKING:
    import tensorrt as trt

__all__ = ["EngineRuntime", "check_version", "engine_runtime", "trt", "use"]


class _ActiveModule:
    """Stands for TensorRT's module: each attribute comes from `tensorrt` or `tensorrt_rtx`, whichever `use` chose last.

    One worker may build with `tensorrt` and `tensorrt_rtx` in turn.
    """

    module: Any = None

    def __getattr__(self, name: str) -> Any:
        return getattr(type(self).module, name)


if not TYPE_CHECKING:
    trt = _ActiveModule()


def engine_runtime(runtime: str) -> Engines:
    """Return the runtime with the given name. Raises StepError for a runtime without TensorRT engines.

    `tensorrt` and `tensorrt-rtx` have engines; neither of the two runtimes loads the engines of the other runtime.
    """
    engines = registry.find(runtime)
    if not isinstance(engines, Engines):
        raise StepError(f"{runtime} takes no TensorRT engines", ["tensorrt and tensorrt-rtx do"])
    return engines


def _known(runtime: str) -> str:
    try:
        return engine_runtime(runtime).name
    except StepError as error:
        raise ValueError(error.what) from error


EngineRuntime = Annotated[str, AfterValidator(_known)]
"""The type of a pydantic field that holds the name of a runtime with TensorRT engines."""


def package(runtime: str) -> str:
    """Return the name of the distribution that pip installs for a runtime."""
    return engine_runtime(runtime).package


def use(runtime: str) -> str:
    """Make `trt` stand for the module of a runtime, and return the module's version, for example "10.13.0.35".

    Raises StepError where the runtime's module is not installed.
    """
    runtime_class = engine_runtime(runtime)
    name = runtime_class.module
    try:
        module: Any = importlib.import_module(name)
        # A folder with type stubs alone can be imported as well, as an empty namespace package.
        if not hasattr(module, "Builder"):
            raise ImportError(f"the module {name!r} that is found has no Builder", name=name)  # noqa: TRY301
    except (ImportError, OSError) as error:
        raise StepError(f"{runtime_class.title} is not installed", [str(error)], runtime_class.install) from error
    _ActiveModule.module = module
    return library_version.with_build(str(module.__version__))


def check_version(runtime: str, installed: str, requested: str | None) -> None:
    """Raise StepError where the installed TensorRT is not the version that the recipe requests ("10.x", "10.4")."""
    refusal = engine_runtime(runtime).other_version(installed, requested)
    if refusal is not None:
        what, hint = refusal
        raise StepError(what, hint=hint)
