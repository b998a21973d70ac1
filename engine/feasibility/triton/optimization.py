"""Optimization: checks of accelerators, of CUDA graphs, and of the fields and parameters that one backend knows."""

# Sources: README of triton-inference-server/onnxruntime_backend ("Model Config Options", "ONNX Runtime with TensorRT
# optimization", "... with OpenVINO") and "Optimization" in Triton's documentation.

# Sources: model_config.proto of triton-inference-server/common, message ModelOptimizationPolicy.Cuda ("Currently only
# recognized by TensorRT backend"), and ValidateGraphSpec, SetCudaGraphShape and InitializeCudaGraph in
# src/instance_state.cc of triton-inference-server/tensorrt_backend.

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import pairwise
from typing import Any

from engine.feasibility.triton.fault import About, Fault, Overrides, Path, missing, unknown
from engine.runtimes.backends import ON_CPU, ON_GPU, Accelerator, Backend
from engine.text import suggestions

_FIELD = "optimization"
_NUMBERS = (
    "intra_op_thread_count", "inter_op_thread_count", "execution_mode", "enable_mem_arena", "enable_mem_pattern",
)  # fmt: skip
"""Parameters that Triton's ONNX Runtime backend reads as whole numbers from 0."""
_AT: Path = ("optimization", "cuda")
_LOWER = "graph_lower_bound"


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


def cuda_graphs(overrides: Overrides, about: About) -> Iterator[Fault]:
    """Yield a fault for each field of `optimization.cuda` that Triton refuses, or with which it captures no graph."""
    cuda = overrides.get("optimization", {}).get("cuda")
    if cuda is None:
        return
    if about.backend is not Backend.TENSORRT or not about.on_gpu:
        why = "is about TensorRT engines, and this model is none" if about.on_gpu else "this package is for a cpu"
        yield Fault(f"`cuda`: {why}", _AT, "leave it out, or use runtime: tensorrt", at_key=True)
    if about.cuda_graphs and not cuda.get("graphs", True):
        what = "`graphs: false`, and the engine was measured with the CUDA graphs of `tensorrt.cuda_graph`"
        yield Fault(what, (*_AT, "graphs"), "leave one of the two out")
    specs = cuda.get("graph_spec", ())
    if specs and not cuda.get("graphs", about.cuda_graphs):
        what = "Triton captures no CUDA graph of a graph_spec without `graphs: true`"
        yield Fault(what, (*_AT, "graph_spec"), "add graphs: true beside it", at_key=True)
    for index, spec in enumerate(specs):
        path = (*_AT, "graph_spec", index)
        yield from _bound(spec, path, about)
        if _LOWER in spec:
            yield from _bound(spec[_LOWER], (*path, _LOWER), about)
            yield from _below(spec, path)


def _bound(bound: Mapping[str, Any], path: Path, about: About) -> Iterator[Fault]:
    """Yield the faults in the rows and the shapes of a graph, or of its lower bound."""
    rows = bound.get("batch_size", 0)
    at = (*path, "batch_size") if "batch_size" in bound else path
    if rows < 0 or (about.largest is not None and rows > about.largest):
        hint = f"0 to {about.largest} is meant: {about.batch_limit}"
        yield Fault(f"a CUDA graph of batch {rows}", at, hint)
    elif rows == 0 and about.batch:
        hint = f"say batch_size: 1, or up to {about.batch}"
        yield Fault(f"a CUDA graph of no rows, and {about.batch_limit}", at, hint)
    inputs = bound.get("input", {})
    for name in inputs:
        yield from unknown("input", name, (*path, "input", name), about.inputs, at_key=True)
    if inputs:
        yield from missing(about.inputs, inputs, (*path, "input"), "shape of the input")


def _below(spec: Mapping[str, Any], path: Path) -> Iterator[Fault]:
    """Yield the faults of a lower bound: Triton uses a graph for the shapes between its lower bound and its own."""
    lower, at, hint = spec[_LOWER], (*path, _LOWER), "the lower bound is the smaller one"
    if lower.get("batch_size", 0) > spec.get("batch_size", 0):
        what = f"the lower bound has {lower['batch_size']} rows, and the graph {spec.get('batch_size', 0)}"
        yield Fault(what, (*at, "batch_size"), hint)
    for name, shape in spec.get("input", {}).items():
        sizes, least = shape.get("dim", []), lower.get("input", {}).get(name, {}).get("dim")
        if least is None or len(least) != len(sizes):
            yield Fault(f"the lower bound has no shape of {name!r} like the graph's {sizes}", at, "add it under input")
        elif any(low > size for low, size in zip(least, sizes, strict=True)):
            what = f"the lower bound of {name!r} is {least}, and the graph's shape {sizes}"
            yield Fault(what, (*at, "input", name), hint)
