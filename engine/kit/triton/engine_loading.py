"""What Triton's TensorRT backend refuses when it loads an engine, as rules for the engine's configuration."""

# Source of each rule: a function of triton-inference-server/tensorrt_backend, src/instance_state.cc or
# src/tensorrt_utils.cc (commit e2ef6d7). The backend itself has loaded none of our packages yet.

from __future__ import annotations

from collections.abc import Iterator, Sequence

from engine.kit.onnx.onnx_files import Input
from engine.kit.triton.config import Config, Signature
from engine.runtimes.triton_tensors import TYPES

_ANY = -1
_OF_SIZES = ("int32", "int64")
"""The types of a shape tensor."""


def problems(
    config: Config, signature: Signature, *, profiles: int, shape_tensors: Sequence[str] = ()
) -> Iterator[str]:
    """Yield the reasons why Triton would refuse the engine, or would not capture a CUDA graph that it configures.

    `signature` has the engine's own tensors, `profiles` is the number of the engine's profiles. `shape_tensors` are the
    names of the inputs whose values are sizes of other tensors.
    """
    yield from _tensors(config, signature, shape_tensors)
    for tensor in config.input:
        if tensor.is_shape_tensor and tensor.name not in shape_tensors:
            yield f"the engine's tensor {tensor.name!r} is marked as a shape tensor, and is none (ValidateIO)"
        elif tensor.name in shape_tensors and not tensor.is_shape_tensor:
            yield f"the engine's shape tensor {tensor.name!r} is not marked as one (ValidateIO)"
    for group in config.instance_group:
        for profile in group.profile:
            if profile.isdecimal() and int(profile) >= max(1, profiles):
                yield f"profile {profile} is none of 0 to {max(1, profiles) - 1} (InitOptimizationProfiles)"
    for spec in config.optimization.cuda.graph_spec:
        yield from _graph(config, signature, spec)


def _tensors(config: Config, signature: Signature, shape_tensors: Sequence[str]) -> Iterator[str]:
    from tritonclient.grpc import model_config_pb2

    for listed, own in ((config.input, signature.inputs), (config.output, signature.outputs)):
        for tensor in listed:
            if tensor.name not in own:
                yield f"the engine has no tensor {tensor.name!r} (ValidateIO)"
                continue
            engine = own[tensor.name]
            if tensor.data_type != model_config_pb2.DataType.Value(TYPES[engine.dtype]):
                yield f"the engine's tensor {tensor.name!r} is {engine.dtype} (ValidateIO)"
            dims = list(tensor.reshape.shape if tensor.HasField("reshape") else tensor.dims)
            if tensor.name in shape_tensors:
                yield from _values(tensor.name, engine, dims, batched=config.max_batch_size > 0)
                continue
            shape = [size if isinstance(size, int) else _ANY for size in engine.shape]
            whole = [_ANY, *dims] if config.max_batch_size else dims
            if not _fits(shape, whole, batched=config.max_batch_size > 0):
                yield f"the engine's tensor {tensor.name!r} has shape {shape}, not {whole} (CompareDimsSupported)"
    for name in signature.inputs:
        if name not in {tensor.name for tensor in config.input}:
            yield f"the engine's input {name!r} is not configured (ValidateIO)"


def _values(name: str, engine: Input, dims: list[int], *, batched: bool) -> Iterator[str]:
    """Yield the reasons why Triton would refuse a shape tensor, or each request that has one.

    With batches, Triton puts the number of rows in front of the values that a request has.
    """
    shape = list(engine.shape)
    if len(shape) > 1:
        yield f"the engine's shape tensor {name!r} has {len(shape)} axes (CompareShapeDimsSupported)"
    elif [size + batched for size in dims] != shape or _ANY in dims:
        yield f"the engine's shape tensor {name!r} has shape {shape}, not {dims} (CompareShapeDimsSupported)"
    elif batched and not shape:
        yield f"a request has 2 values for the engine's shape tensor {name!r}, which has 1 (ValidateShapeValues)"
    if engine.dtype not in _OF_SIZES:
        yield f"the engine's shape tensor {name!r} is {engine.dtype} (InitializeShapeInputBinding)"


def _fits(shape: Sequence[int], whole: Sequence[int], *, batched: bool) -> bool:
    if batched and shape[:1] != [_ANY]:
        return False
    return len(shape) == len(whole) and all(
        size == other or _ANY in {size, other} for size, other in zip(shape, whole, strict=True)
    )


def _graph(config: Config, signature: Signature, spec: Config) -> Iterator[str]:
    most, bounded = config.max_batch_size, spec.HasField("graph_lower_bound")
    for bound in (spec, spec.graph_lower_bound) if bounded else (spec,):
        if most and not 1 <= bound.batch_size <= most:
            yield f"graph_spec: batch_size {bound.batch_size} is not between 1 and {most} (ValidateGraphSpec)"
        if not most and bound.batch_size:
            yield f"graph_spec: batch_size {bound.batch_size} without max_batch_size (ValidateGraphSpec)"
    if not spec.input:
        return  # then the backend takes the opt shapes
    for name in signature.inputs:
        if name not in spec.input:
            yield f"graph_spec has no shape of the input {name!r}: nothing is captured (SetCudaGraphShape)"
    for name, shape in spec.input.items():
        if any(size < 0 for size in shape.dim):
            yield f"graph_spec: a size of {name!r} is negative (ValidateGraphSpec)"
    if bounded:
        yield from _below(spec)


def _below(spec: Config) -> Iterator[str]:
    """Yield the problems of a graph's lower bound: Triton uses the graph for the shapes between bound and graph."""
    if spec.graph_lower_bound.batch_size > spec.batch_size:
        yield "graph_lower_bound is above graph_spec in batch_size (ValidateGraphSpec)"
    lower = spec.graph_lower_bound.input
    for name, shape in spec.input.items():
        least = list(lower[name].dim) if name in lower else None
        if least is None or len(least) != len(shape.dim):
            yield f"graph_lower_bound has no shape of {name!r} with {len(shape.dim)} sizes (ValidateGraphSpec)"
        elif any(low > size for low, size in zip(least, shape.dim, strict=True)):
            yield f"graph_lower_bound is above graph_spec in {name!r} (ValidateGraphSpec)"
