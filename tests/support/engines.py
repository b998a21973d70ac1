"""Build engines as a plan does: the graph is prepared first, and then compiled on the GPU that the builder names."""

import os
import shutil
import tempfile
from dataclasses import dataclass
from pathlib import Path
from unittest import mock

import pytest

from engine.machine import cuda
from engine.recipe.schema import Recipe
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


def rtx_bytes(graph, device, profile):
    """Return the size of the engine that TensorRT-RTX builds of a graph for a device that need not be here."""
    pytest.importorskip("tensorrt_rtx", reason="the extra `rtx` is not installed: Linux on x86_64 has it")
    target = {"device": device, "runtime": "tensorrt-rtx"}
    fields = {"name": "m", "model": {"source": "m"}, "target": target, "precision": "fp16", "profiles": [profile]}
    with tempfile.TemporaryDirectory() as folder:
        return of(Recipe.model_validate(fields)).run(Path(folder) / "out", checked=graph).bytes


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
