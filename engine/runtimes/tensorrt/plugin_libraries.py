"""Libraries of plugins: TensorRT's own, and those that a recipe names; both are registered before a build or a load."""

# Sources: NVIDIA's Python API, `init_libnvinfer_plugins` ("should be called once before accessing the Plugin
# Registry") and `IPluginRegistry.load_library` (fails where a plugin is registered already); NvInfer.h,
# `IBuilderConfig::setPluginsToSerialize`, which puts libraries into version-compatible engines only, and
# `IRuntime::getPluginRegistry`, the registry of one runtime. None of this has run on a GPU yet.

from __future__ import annotations

import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from engine.errors import StepError
from engine.runtimes.tensorrt import failures as trt_failures
from engine.runtimes.tensorrt.api import trt

if TYPE_CHECKING:
    import tensorrt

    from engine.runtimes.tensorrt.log import Log

FOLDER = "plugins"
"""The folder beside an engine with the libraries of plugins that the engine needs."""


def register_own(logger: tensorrt.ILogger) -> None:
    """Register TensorRT's own plugins, as Triton's TensorRT backend does when it starts."""
    if not trt.init_libnvinfer_plugins(logger, ""):
        print("TensorRT could not register its own plugins")


def load(runtime: tensorrt.Runtime, log: Log, paths: Sequence[Path]) -> None:
    """Load the libraries of an engine's plugins into the runtime that is to load the engine.

    Each runtime has a registry of its own. Raises StepError for a library that TensorRT cannot load.
    """
    for path in paths:
        if runtime.get_plugin_registry().load_library(str(path)) is None:
            raise unloadable(path, log)


def unloadable(path: Path, log: Log) -> Exception:
    """Return the error for a library of plugins that TensorRT cannot load."""
    return trt_failures.refused(f"the plugin library {path.name}", log.problems, "is it built for this TensorRT?")


def keep(directory: Path, paths: Sequence[Path], *, inside: bool) -> None:
    """Copy libraries of plugins beside the engine in `directory`, unless the engine holds them.

    Raises StepError where two libraries have one name.
    """
    names = [path.name for path in paths]
    if len(set(names)) < len(names):
        raise StepError(
            "two libraries under tensorrt.plugins have the same name", names, "a package has one folder: rename one"
        )
    if inside:
        return
    for path in paths:
        (directory / FOLDER).mkdir(exist_ok=True)
        shutil.copyfile(path, directory / FOLDER / path.name)


def beside(directory: Path, names: Sequence[str]) -> list[Path]:
    """Return the paths of an engine's libraries of plugins; `directory` is the engine's folder."""
    return [directory / FOLDER / name for name in names]
