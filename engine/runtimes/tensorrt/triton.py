"""How an engine is served: by Triton's TensorRT backend; engines of TensorRT-RTX are packaged as a plain folder."""

from __future__ import annotations

from pathlib import Path

from engine.runtimes.backends import Backend
from engine.runtimes.execution import Execution
from engine.runtimes.served import Graph, Served
from engine.runtimes.tensorrt import loading, passport, plugin_libraries
from engine.runtimes.tensorrt.api import product
from engine.runtimes.tensorrt.passport import Passport


def served(directory: Path, execution: Execution, scratch: Path) -> Served:  # noqa: ARG001 - nothing is tried
    """Return how an engine is served: by Triton's TensorRT backend, or as a plain folder for TensorRT-RTX."""
    engine_passport, runtime = passport.load(directory), execution.by
    triton = runtime.loads_in_triton
    return Served(
        Backend.TENSORRT if triton else None,
        loading.tensors(engine_passport.inputs),
        loading.tensors(engine_passport.outputs),
        (passport.PLAN, passport.FILE, *(f"{plugin_libraries.FOLDER}/{name}" for name in engine_passport.plugins)),
        largest=engine_passport.largest,
        on_gpu=True,
        profiles=len(engine_passport.profiles),
        shape_tensors=engine_passport.shape_tensors,
        cuda_graphs=_graphs(engine_passport) if execution.options["cuda_graph"] else None,
        why_plain="" if triton else runtime.not_triton,
        needs=() if triton else (f"{product(runtime.name).package}=={engine_passport.tensorrt}", "cuda-bindings"),
    )


def _graphs(engine: Passport) -> list[Graph]:
    """Return for each profile the shapes of one CUDA graph: the opt and the min shape of every input.

    An input without a free axis has one shape, and is in no profile. Triton captures no graph where one input's shape
    is missing.
    """
    fixed = {name: tuple(size for size in tensor.shape if isinstance(size, int))
             for name, tensor in engine.inputs.items()
             if not any(isinstance(size, str) for size in tensor.shape)}  # fmt: skip
    return [
        Graph(
            usual={**fixed, **{name: extents.opt for name, extents in profile.items()}},
            least={**fixed, **{name: extents.min for name, extents in profile.items()}},
        )
        for profile in engine.profiles or ({},)
    ]


def built_by(folder: Path) -> tuple[str, bool, tuple[str, ...]]:
    """Return what built the engine in a folder: version, whether later versions load the engine, plugins.

    The version is an empty text where the model's folder has no passport. The plugins are the paths, below `folder`, of
    the libraries that the engine needs.
    """
    files = next(iter(sorted(folder.glob(f"*/{passport.FILE}"))), None)
    if files is None:
        return "", False, ()
    engine_passport = passport.load(files)
    plugins = (
        path.relative_to(folder).as_posix() for path in plugin_libraries.beside(files.parent, engine_passport.plugins)
    )
    return engine_passport.tensorrt, bool(engine_passport.options.get("version_compatible")), tuple(plugins)
