"""CUDA graphs: checks of `optimization.cuda`, which graphs Triton captures for an engine, against its batches."""

# Sources: model_config.proto of triton-inference-server/common, message ModelOptimizationPolicy.Cuda ("Currently only
# recognized by TensorRT backend"), and ValidateGraphSpec, SetCudaGraphShape and InitializeCudaGraph in
# src/instance_state.cc of triton-inference-server/tensorrt_backend.

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from engine.feasibility.triton.fault import About, Fault, Path, unknown_tensor
from engine.runtimes.backends import Backend

_AT: Path = ("optimization", "cuda")
_LOWER = "graph_lower_bound"


def check(cuda: Mapping[str, Any], about: About) -> Iterator[Fault]:
    """Yield a fault for each field of `optimization.cuda` that Triton refuses, or with which it captures no graph."""
    if not about.on_gpu:
        yield Fault("`cuda`: this package is for a cpu", _AT, "leave it out", at_key=True)
    elif about.backend is not Backend.TENSORRT:
        what = "`cuda` is about TensorRT engines, and this model is none"
        yield Fault(what, _AT, "leave it out, or use runtime: tensorrt", at_key=True)
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
    yield from _rows(bound.get("batch_size", 0), (*path, "batch_size") if "batch_size" in bound else path, about)
    inputs = bound.get("input", {})
    for name, shape in inputs.items():
        if about.inputs is not None and name not in about.inputs:
            yield unknown_tensor("input", name, (*path, "input", name), about.inputs, at_key=True)
        if any(size < 0 for size in shape.get("dim", ())):
            yield Fault("a CUDA graph has whole sizes", (*path, "input", name), "as in dim: [128]")
    missing = [name for name in about.inputs or () if name not in inputs]
    if inputs and missing:
        what = f"the shape of the input {missing[0]!r} is missing: Triton captures no graph"
        yield Fault(what, (*path, "input"), "add it, or leave `input` out", at_key=True)


def _rows(rows: int, at: Path, about: About) -> Iterator[Fault]:
    """Yield a fault for a number of rows that Triton cannot send: each graph of a model with batches needs some."""
    if rows < 0 or (about.largest is not None and rows > about.largest):
        limit = "at least 0 is meant" if rows < 0 else f"at most {about.largest} is meant: {about.batch_limit}"
        yield Fault(f"a CUDA graph of batch {rows}", at, limit)
    elif rows == 0 and about.batch:
        hint = f"say batch_size: 1, or up to {about.batch}"
        yield Fault(f"a CUDA graph of no rows, and {about.batch_limit}", at, hint)


def _below(spec: Mapping[str, Any], path: Path) -> Iterator[Fault]:
    """Yield the faults of a lower bound: Triton uses a graph for the shapes between its lower bound and its own."""
    lower, at = spec[_LOWER], (*path, _LOWER)
    if lower.get("batch_size", 0) > spec.get("batch_size", 0):
        what = f"the lower bound has {lower['batch_size']} rows, and the graph {spec.get('batch_size', 0)}"
        yield Fault(what, (*at, "batch_size"), "the lower bound is the smaller one")
    for name, shape in spec.get("input", {}).items():
        sizes, least = shape.get("dim", []), lower.get("input", {}).get(name, {}).get("dim")
        if least is None or len(least) != len(sizes):
            yield Fault(f"the lower bound has no shape of {name!r} like the graph's {sizes}", at, "add it under input")
        elif any(low > size for low, size in zip(least, sizes, strict=True)):
            what = f"the lower bound of {name!r} is {least}, and the graph's shape {sizes}"
            yield Fault(what, (*at, "input", name), "the lower bound is the smaller one")
