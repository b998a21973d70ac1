"""How an engine is served: by Triton's TensorRT backend, or as a folder where that does not load it."""

from __future__ import annotations

from pathlib import Path

from engine.runtimes.backends import Backend
from engine.runtimes.execution import Execution
from engine.runtimes.served import Served
from engine.runtimes.tensorrt import api as trt_api
from engine.runtimes.tensorrt import passport


def served(directory: Path, execution: Execution, scratch: Path) -> Served:  # noqa: ARG001 - nothing is tried
    """Return how an engine is served: by Triton's TensorRT backend, or as a folder where that does not load it."""
    said, runtime = passport.load(directory), execution.by
    usual = [{name: extents.opt for name, extents in profile.items()} for profile in said.profiles]
    triton = runtime.loads_in_triton
    return Served(
        Backend.TENSORRT if triton else None,
        said.input_list,
        said.output_list,
        (passport.PLAN, passport.FILE),
        largest=said.largest,
        on_gpu=True,
        profiles=len(said.profiles),
        cuda_graphs=usual if execution.options["cuda_graph"] else None,
        why_plain="" if triton else runtime.not_triton,
        needs=() if triton else (f"{trt_api.package(runtime.name)}=={said.tensorrt}", "cuda-bindings"),
    )


def built_by(folder: Path) -> tuple[str, bool]:
    """Return the TensorRT that built the engine in a model's folder of a repository, and whether later ones load it."""
    told = next(iter(sorted(folder.glob(f"*/{passport.FILE}"))), None)
    if told is None:
        return "", False
    said = passport.load(told)
    return said.tensorrt, bool(said.options.get("version_compatible"))
