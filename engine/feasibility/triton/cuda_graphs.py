"""CUDA graphs: checks of `optimization.cuda`, which graphs Triton captures for an engine, against its batches."""

# Sources: model_config.proto of triton-inference-server/common, message ModelOptimizationPolicy.Cuda ("Currently only
# recognized by TensorRT backend"), and ValidateGraphSpec, SetCudaGraphShape and InitializeCudaGraph in
# src/instance_state.cc of triton-inference-server/tensorrt_backend.

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from engine.feasibility.triton.fault import About, Fault, Overrides, Path, missing, unknown
from engine.runtimes.backends import Backend

_AT: Path = ("optimization", "cuda")
_LOWER = "graph_lower_bound"


def rule(overrides: Overrides, about: About) -> Iterator[Fault]:
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
