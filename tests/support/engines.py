"""Build engines as a plan does: the graph is prepared first, and then compiled on the GPU that the builder names."""

import os
import shutil
from dataclasses import dataclass
from unittest import mock

from engine.machine import cuda
from engine.runtimes.tensorrt.builder import Order
from engine.runtimes.tensorrt.options import BuilderOptions
from engine.runtimes.tensorrt.prepared_graph import Extents, Onnx, PreparedGraph
from engine.step import GPU_VARIABLE
from engine.steps.trt_build import TrtBuild
from engine.steps.trt_prepare import TrtPrepare


@dataclass
class EngineSteps:
    """The two steps of a recipe that build its engine."""

    prepare: TrtPrepare
    build: TrtBuild

    def run(self, out, *, checked, checkpoint=None, **inputs):
        """Build the engine in `out`, from the graph in `checked`; return the report."""
        prepared = out.parent / "prepared"
        shutil.rmtree(prepared, ignore_errors=True)
        self.prepare.run(prepared, checked=checked, checkpoint=checkpoint)
        return compiled(self.build, out, prepared=prepared, **inputs)


def of(recipe):
    """Return the two steps of a recipe."""
    return EngineSteps(TrtPrepare.for_recipe(recipe), TrtBuild.for_recipe(recipe))


def compiled(step, out, **inputs):
    """Run the step that compiles, as a worker does on the GPU that the builder has chosen; return the report."""
    hardware = step.hardware()
    names = [device.name for device in cuda.devices() if hardware is not None and hardware.includes(device.name)]
    with mock.patch.dict(os.environ, {GPU_VARIABLE: names[0] if names else ""}):
        return step.run(out, **inputs)


def order(folder, *, profile=None, sms=()):
    """Return what the builder gets for the graph in a folder with one profile of fixed shapes, by the input's name."""
    shapes = {name: Extents(min=shape, opt=shape, max=shape) for name, shape in (profile or {}).items()}
    about = PreparedGraph(
        model="model.onnx", onnx=Onnx(digest="", bytes=0), inputs={}, outputs={}, profiles=(shapes,)
    )  # fmt: skip
    return Order(folder, about, BuilderOptions(), sms)
