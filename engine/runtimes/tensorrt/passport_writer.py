"""Passport writer: makes the passport of a new engine from the builder's `Order` and its result `Built`."""

from __future__ import annotations

import os
import platform
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from engine import digest
from engine.kit.onnx import onnx_files
from engine.machine import cuda, local_gpus
from engine.runtimes.tensorrt.passport import EngineTensor, Extents, Onnx, Passport, Precision
from engine.step import KEY_VARIABLE

if TYPE_CHECKING:
    import onnx

    from engine.kit.onnx.onnx_files import Input
    from engine.runtimes.devices import CudaGpu
    from engine.runtimes.tensorrt.builder import Built, Order
    from engine.runtimes.tensorrt.plan_proof import PlanProof


def write(
    order: Order,
    built: Built,
    *,
    runtime: str,
    version: str,
    precision: Precision,
    graph: onnx.ModelProto,
    targets: tuple[str, ...],
    gpu: CudaGpu | None,
    plan: PlanProof | None = None,
) -> Passport:
    """Return the passport.

    `gpu` is the GPU that built the engine; None for TensorRT-RTX, which builds for the GPUs `targets` without a GPU.
    """
    return Passport(
        kind=runtime,
        gpu=targets if gpu is None else (gpu.name,),
        sms=order.sms if gpu is None else (gpu.sm,),
        tensorrt=version,
        cuda_runtime=None if gpu is None else cuda.runtime_version(),
        driver=None if gpu is None else _driver(),
        os=platform.system(),
        arch=platform.machine(),
        options={**order.options.as_dict(), "plugins": [path.name for path in order.plugins], "strongly_typed": True},
        profiles=tuple(
            {name: Extents(min=least, opt=usual, max=most) for name, (least, usual, most) in shapes.items()}
            for shapes in order.shapes
        ),
        values=_values(order, built.shape_tensors),
        precision=precision,
        plan=plan,
        inputs=_tensors(onnx_files.inputs(graph)),
        outputs=_tensors(onnx_files.outputs(graph)),
        onnx=_onnx(order.model.parent, graph),
        key=os.environ.get(KEY_VARIABLE, ""),
        bytes=len(built.plan),
    )


def _values(order: Order, shape_tensors: Sequence[str]) -> tuple[dict[str, Extents], ...]:
    """Return the values of the shape tensors for each profile; empty where the engine has none."""
    if not shape_tensors:
        return ()
    return tuple(
        {name: Extents(min=values[name].min, opt=values[name].opt, max=values[name].max) for name in shape_tensors}
        for values in order.values
    )


def _driver() -> str | None:
    version = local_gpus.driver()
    return None if version in ("none", "unknown") else version


def _onnx(folder: Path, graph: onnx.ModelProto) -> Onnx:
    return Onnx(
        digest=digest.of_tree({name: digest.of_file(folder / name) for name in onnx_files.files(graph)}),
        bytes=onnx_files.size(folder, graph),
    )


def _tensors(values: Mapping[str, Input]) -> dict[str, EngineTensor]:
    return {name: EngineTensor(dtype=value.dtype, shape=value.shape) for name, value in values.items()}
