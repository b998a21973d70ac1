"""Compilation: TensorRT or TensorRT-RTX makes an engine from a prepared graph; this is the work of `trt-build`."""

# Each edit of a module that this module imports builds all engines again. What needs no TensorRT is done before, by the
# step `trt-prepare`, and the plan is made by the step's class in engine/steps/trt_build.py (ADR 65).

from __future__ import annotations

import os
import platform
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

from engine.errors import StepError
from engine.machine import cuda, nvml
from engine.runtimes import choice
from engine.runtimes.tensorrt import api as trt_api
from engine.runtimes.tensorrt import builder as trt_builder
from engine.runtimes.tensorrt import cudart, layer_types, passport, plan_proof, plugin_libraries, prepared_graph
from engine.runtimes.tensorrt import options as trt_options
from engine.runtimes.tensorrt.failures import UnfitGraphError
from engine.runtimes.tensorrt.options import BuilderOptions
from engine.runtimes.tensorrt.passport import Passport, Precision
from engine.runtimes.tensorrt.report import EngineReport
from engine.step import GPU_VARIABLE, KEPT, KEY_VARIABLE, Source, Step, TypedReport

if TYPE_CHECKING:
    from engine.machine.cuda import CudaDevice
    from engine.runtimes.tensorrt.builder import Order


class Compilation(Step, BuilderOptions):
    """Build a TensorRT engine."""

    makes: ClassVar[str] = "compiled"
    report: ClassVar[type[TypedReport] | None] = EngineReport

    runtime: trt_api.EngineRuntime
    devices: tuple[str, ...]
    precision: str = "fp32"
    """The precision in the recipe, which is written into the passport only: the graph sets the precision."""
    sms: tuple[int, ...] = ()
    """The compute capabilities of a TensorRT-RTX engine, times ten; empty for TensorRT."""
    timing_cache: Source | None = None
    plugins: tuple[Source, ...] = ()
    candidate: bool = False
    """Whether the plan compares runtimes, so that a graph that TensorRT cannot read is no error."""

    def run(self, out: Path, *, prepared: Path, timing_cache: Path | None = None, **plugins: Path) -> EngineReport:
        """Build the engine, and write the engine as `model.plan` and its passport into `out`.

        Raises ImportError where TensorRT is missing, and StepError where this machine lacks the GPU that the builder
        has chosen for the job. Where TensorRT cannot read or build the graph, the StepError has TensorRT's own message;
        a candidate that TensorRT cannot read is no error, and the reason is written in place of an engine.
        """
        version = trt_api.use(self.runtime)
        gpu = None if self.sms else _gpu(os.environ.get(GPU_VARIABLE, ""))
        kept = out.parent / KEPT
        cache = timing_cache or (kept if kept.is_file() else None)
        order = trt_builder.Order(
            folder=prepared,
            graph=prepared_graph.read(prepared),
            options=self,
            sms=self.sms,
            plugins=list(plugins.values()),
            timing_cache=None if self.sms else cache.read_bytes() if cache else b"",
        )
        try:
            return self._built(out, order, version=version, gpu=gpu)
        except UnfitGraphError as error:
            if not self.candidate:
                raise
            reason = f"{error.what}: {'; '.join(error.facts)}"
            choice.refuse(out, reason)
            return EngineReport(bytes=0, tensorrt=version, gpu=(), profiles=0, network={}, engine=None, refused=reason)

    def _built(self, out: Path, order: Order, *, version: str, gpu: CudaDevice | None) -> EngineReport:
        """Build the engine, and write the engine and its passport into `out`."""
        target = " and ".join(self.devices)
        print(f"building with {self.runtime} {version} for {target}; {order.graph.forecast}", flush=True)
        tf32 = trt_options.tf32_words(self, self.precision, self.sms or (() if gpu is None else (gpu.sm,)))
        if tf32:
            print(tf32, flush=True)
        built = trt_builder.build(order)
        layers, unknown = (
            (None, "only where it runs can TensorRT-RTX tell")
            if self.sms
            else layer_types.of_engine(built.plan, () if self.version_compatible else order.plugins)
        )
        out.mkdir(parents=True, exist_ok=True)
        (out / passport.PLAN).write_bytes(built.plan)
        plugin_libraries.keep(out, order.plugins, inside=self.version_compatible)
        if built.timing_cache is not None:
            (out.parent / KEPT).write_bytes(built.timing_cache)
        precision = Precision(asked=self.precision, network=built.network, engine=layers, unknown=unknown)
        proof, unread = (
            plan_proof.prove(built.plan, self.precision, built.products) if self.sms else (None, "it is no RTX engine")
        )
        graph, sizes = order.graph, built.shape_tensors
        plugins = [path.name for path in order.plugins]
        written = Passport(
            kind=self.runtime,
            gpu=self.devices if gpu is None else (gpu.name,),
            sms=order.sms if gpu is None else (gpu.sm,),
            tensorrt=version,
            cuda_runtime=None if gpu is None else cuda.runtime_version(),
            driver=None if gpu is None else nvml.installed_driver(),
            os=platform.system(),
            arch=platform.machine(),
            options={**self.as_dict(), "plugins": plugins, "strongly_typed": True},
            profiles=graph.profiles,
            values=tuple({name: values[name] for name in sizes} for values in graph.values) if sizes else (),
            precision=precision,
            plan=proof,
            inputs=graph.inputs,
            outputs=graph.outputs,
            onnx=graph.onnx,
            key=os.environ.get(KEY_VARIABLE, ""),
            bytes=len(built.plan),
        )
        passport.save(out, written)
        return EngineReport(
            bytes=written.bytes,
            tensorrt=version,
            gpu=tuple(written.gpu),
            profiles=len(written.profiles),
            network=dict(built.network),
            engine=None if layers is None else dict(layers),
            plan=proof,
            plan_unknown=unread if self.sms else "",
            tf32=tf32,
            sparse=order.graph.sparse,
        )


def _gpu(name: str) -> CudaDevice:
    """Make the first GPU with a name, as CUDA reports names, the current GPU, and return it.

    The builder chooses the name: it compares the names of the catalogue, whose changes then build no engine again.
    Raises StepError where CUDA shows no GPU with the name.
    """
    here = cuda.devices()
    for index, device in enumerate(here):
        if device.name == name:
            if len(here) > 1:
                cudart.use(index)
            return device
    raise StepError(
        f"CUDA shows no GPU called {name!r}, on which the engine is to be built",
        [f"CUDA shows {', '.join(device.name for device in here) or 'no GPU'}"],
        "run it on a machine with that GPU and NVIDIA's driver; CUDA_VISIBLE_DEVICES may hide one",
    )
