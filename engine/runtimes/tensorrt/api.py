"""API of TensorRT: the name `trt` stands for the module `tensorrt` or `tensorrt_rtx`, whichever the runtime needs."""

# Both modules have the same classes. TensorRT-RTX has additional classes and methods, which `builder` and `runner` look
# up by name. The types are those of the package `tensorrt-stubs`, which tests/runtimes/tensorrt/test_types.py checks;
# without the package the types are Any.

from __future__ import annotations

import ctypes
import importlib
import os
from typing import TYPE_CHECKING, Annotated, Any

from pydantic import AfterValidator

from engine.errors import StepError
from engine.runtimes.tensorrt_values import TENSORRT, TENSORRT_RTX, Product
from engine.text.versions import VersionMatch, compare, is_whole, numbers

if TYPE_CHECKING:
    import tensorrt as trt

__all__ = ["EngineRuntime", "product", "trt", "use"]

_PRODUCTS = {each.name: each for each in (TENSORRT, TENSORRT_RTX)}
_PARTS = ("Major", "Minor", "Patch", "Build")


class _ActiveModule:
    """Stands for TensorRT's module: each attribute comes from `tensorrt` or `tensorrt_rtx`, whichever `use` chose last.

    One worker may build with `tensorrt` and `tensorrt_rtx` in turn.
    """

    module: Any = None

    def __getattr__(self, name: str) -> Any:
        return getattr(type(self).module, name)


if not TYPE_CHECKING:
    trt = _ActiveModule()


def product(runtime: str) -> Product:
    """Return the product with which a runtime builds engines. Raises StepError for a runtime without engines.

    Neither of the two products loads the engines of the other one.
    """
    if runtime not in _PRODUCTS:
        raise StepError(f"{runtime} takes no TensorRT engines", [f"{' and '.join(_PRODUCTS)} do"])
    return _PRODUCTS[runtime]


def _known(runtime: str) -> str:
    try:
        return product(runtime).name
    except StepError as error:
        raise ValueError(error.what) from error


EngineRuntime = Annotated[str, AfterValidator(_known)]
"""The type of a pydantic field that holds the name of a runtime with TensorRT engines."""


def use(runtime: str) -> str:
    """Make `trt` stand for the module of a runtime, and return the module's version, for example "10.13.0.35".

    Raises ImportError where the runtime's module is not installed.
    """
    name = product(runtime).module
    module: Any = importlib.import_module(name)
    # A folder with type stubs alone can be imported as well, as an empty namespace package.
    if not hasattr(module, "Builder"):
        raise ImportError(f"the module {name!r} has no Builder", name=name)
    _ActiveModule.module = module
    return with_build(str(module.__version__))


def with_build(version: str) -> str:
    """Return the four numbers of the loaded library of TensorRT for a version of the bindings.

    pip's TensorRT up to 10.7 has three numbers, and a plan loads where all four are the same. The result is `version`
    itself where it has four numbers, where no library is loaded, or where the library is of another version. Source:
    `getInferLibBuildVersion` and its siblings, which `NvInferRuntime.h` declares.
    """
    if is_whole(version) or not numbers(version):
        return version
    try:
        name = f"libnvinfer.so.{numbers(version)[0]}"
        library = ctypes.CDLL(name, mode=ctypes.DEFAULT_MODE | os.RTLD_NOLOAD)  # the one that the bindings loaded
        whole = ".".join(str(getattr(library, f"getInferLib{part}Version")()) for part in _PARTS)
    except (OSError, AttributeError):
        return version
    return version if compare(version, whole) is VersionMatch.DIFFERENT else whole
