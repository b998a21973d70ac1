"""Optimization: checks of accelerators, and of the fields and parameters that one backend knows."""

# Sources: README of triton-inference-server/onnxruntime_backend ("Model Config Options", "ONNX Runtime with TensorRT
# optimization", "... with OpenVINO") and "Optimization" in Triton's documentation.

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import pairwise
from typing import Any

from engine.feasibility.triton.fault import About, Fault, Overrides, Path
from engine.runtimes.backends import ON_CPU, ON_GPU, Accelerator, Backend
from engine.text import suggestions

_FIELD = "optimization"
_NUMBERS = (
    "intra_op_thread_count", "inter_op_thread_count", "execution_mode", "enable_mem_arena", "enable_mem_pattern",
)  # fmt: skip
"""Parameters that Triton's ONNX Runtime backend reads as whole numbers from 0."""


def rule(overrides: Overrides, about: About) -> Iterator[Fault]:
    """Yield a fault for each field that a backend refuses or silently ignores."""
    yield from _parameters(overrides, about)
    optimization = overrides.get(_FIELD, {})
    if "graph" in optimization and about.backend is not Backend.ONNXRUNTIME:
        what, at = "`graph.level` is about ONNX Runtime, and this model is not run by it", (_FIELD, "graph", "level")
        yield Fault(what, at, "leave it out")
    for side in ("gpu_execution_accelerator", "cpu_execution_accelerator"):
        for index, each in enumerate(optimization.get("execution_accelerators", {}).get(side, ())):
            yield from _accelerator(each, (_FIELD, "execution_accelerators", side, index), about)
    for index, control in enumerate(overrides.get("model_metrics", {}).get("metric_control", ())):
        buckets = control.get("histogram_options", {}).get("buckets", [])
        if any(later <= earlier for earlier, later in pairwise(buckets)):
            path = ("model_metrics", "metric_control", index, "histogram_options", "buckets")
            yield Fault(f"the buckets {buckets} do not rise", path, "sort them")


def _accelerator(accelerator: Mapping[str, Any], path: Path, about: About) -> Iterator[Fault]:
    name, at = accelerator.get("name", ""), (*path, "name")
    side = str(path[2])
    if about.backend is not Backend.ONNXRUNTIME:
        what = f"`{side}` is about ONNX Runtime, and this model is not run by it: it would be ignored"
        yield Fault(what, path, "leave it out")
        return
    if side.startswith("gpu") and not about.on_gpu:
        yield Fault(f"`{side}`: this package is for a cpu", path, "leave it out; `openvino` is one for a cpu")
        return
    known = ON_GPU if side.startswith("gpu") else ON_CPU
    if name not in known:
        what = f"ONNX Runtime has no accelerator {name!r} here: Triton would refuse it"
        yield Fault(what, at if name else path, suggestions.hint(name, known) if name else f"add name: {known[0]}")
        return
    if side.startswith("cpu") and about.on_gpu:
        what = f"{name!r} computes on a cpu, and this package was built and measured for a GPU"
        yield Fault(what, at, "leave it out; for a cpu, set target.device: cpu")
    if name == Accelerator.TENSORRT and about.accelerator is not Accelerator.TENSORRT:
        what = "the accelerator tensorrt, and the model was validated and measured without it"
        yield Fault(what, at, "say target: {runtime: onnxruntime, provider: tensorrt}")
    precision = accelerator.get("parameters", {}).get("precision_mode", "FP32")
    if name == Accelerator.TENSORRT and precision != "FP32":
        what = f"`precision_mode: {precision}` computes otherwise than what was validated"
        yield Fault(what, (*path, "parameters", "precision_mode"), "leave it out: the recipe's `precision` decides")


def _parameters(overrides: Overrides, about: About) -> Iterator[Fault]:
    for name, value in overrides.get("parameters", {}).items():
        text, at = value.get("string_value"), ("parameters", name)
        if text is None:
            yield Fault(f"the parameter {name!r} has no value", at, "as in {string_value: text}")
            continue
        if name in about.parameters and text != about.parameters[name]:
            what = f"the parameter {name!r} is the package's own: {about.parameters[name]!r}"
            yield Fault(what, (*at, "string_value"), "choose another name")
        if about.backend is Backend.ONNXRUNTIME and name in _NUMBERS and not (text.isascii() and text.isdecimal()):
            what = f"`{name}` is a whole number from 0, as text: {text!r} is none"
            yield Fault(what, (*at, "string_value"), 'as in "1"')
