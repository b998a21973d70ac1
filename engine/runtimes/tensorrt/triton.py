"""How an engine is served: by Triton's TensorRT backend; engines of TensorRT-RTX are packaged as a plain folder."""

from __future__ import annotations

from pathlib import Path

from engine.runtimes.backends import Backend
from engine.runtimes.execution import Execution
from engine.runtimes.served import Served
from engine.runtimes.tensorrt import api as trt_api
from engine.runtimes.tensorrt import passport


def served(directory: Path, execution: Execution, scratch: Path) -> Served:  # noqa: ARG001 - nothing is tried
    """Return how an engine is served: by Triton's TensorRT backend, or as a plain folder for TensorRT-RTX."""
    engine_passport, runtime = passport.load(directory), execution.by
    usual = [{name: extents.opt for name, extents in profile.items()} for profile in engine_passport.profiles]
    triton = runtime.loads_in_triton
    return Served(
        Backend.TENSORRT if triton else None,
        engine_passport.input_list,
        engine_passport.output_list,
        (passport.PLAN, passport.FILE),
        largest=engine_passport.largest,
        on_gpu=True,
        profiles=len(engine_passport.profiles),
        cuda_graphs=usual if execution.options["cuda_graph"] else None,
        why_plain="" if triton else runtime.not_triton,
        needs=() if triton else (f"{trt_api.package(runtime.name)}=={engine_passport.tensorrt}", "cuda-bindings"),
    )


def built_by(folder: Path) -> tuple[str, bool]:
    """Return the TensorRT version that built the engine in a folder, and whether later versions load the engine.

    The returned version is an empty text where the model's folder has no passport.
    """
    files = next(iter(sorted(folder.glob(f"*/{passport.FILE}"))), None)
    if files is None:
        return "", False
    engine_passport = passport.load(files)
    return engine_passport.tensorrt, bool(engine_passport.options.get("version_compatible"))
