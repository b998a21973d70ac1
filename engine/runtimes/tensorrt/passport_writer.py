"""Passport writer: makes the passport of a new engine from the builder's `Order` and its result `Built`."""

from __future__ import annotations

import os
import platform
from typing import TYPE_CHECKING

from engine.machine import cuda, nvml
from engine.runtimes.tensorrt.passport import Passport, Precision
from engine.step import KEY_VARIABLE

if TYPE_CHECKING:
    from engine.machine.cuda import CudaDevice
    from engine.runtimes.tensorrt.builder import Built, Order
    from engine.runtimes.tensorrt.plan_proof import PlanProof


def write(
    order: Order,
    built: Built,
    *,
    runtime: str,
    version: str,
    precision: Precision,
    targets: tuple[str, ...],
    gpu: CudaDevice | None,
    plan: PlanProof | None = None,
) -> Passport:
    """Return the passport.

    `gpu` is the GPU that built the engine; None for TensorRT-RTX, which builds for the GPUs `targets` without a GPU.
    """
    graph, sizes = order.graph, built.shape_tensors
    return Passport(
        kind=runtime,
        gpu=targets if gpu is None else (gpu.name,),
        sms=order.sms if gpu is None else (gpu.sm,),
        tensorrt=version,
        cuda_runtime=None if gpu is None else cuda.runtime_version(),
        driver=None if gpu is None else nvml.installed_driver(),
        os=platform.system(),
        arch=platform.machine(),
        options={**order.options.as_dict(), "plugins": [path.name for path in order.plugins], "strongly_typed": True},
        profiles=graph.profiles,
        values=tuple({name: values[name] for name in sizes} for values in graph.values) if sizes else (),
        precision=precision,
        plan=plan,
        inputs=graph.inputs,
        outputs=graph.outputs,
        onnx=graph.onnx,
        key=os.environ.get(KEY_VARIABLE, ""),
        bytes=len(built.plan),
    )
