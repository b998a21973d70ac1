"""What Triton's TensorRT backend refuses when it loads an engine, as rules for the engine's configuration."""

# The rules of feasibility/triton compare the configuration with the engine's own tensors, profiles and CUDA graphs. The
# rules here are about the batch axis and about shape tensors. Source of each: a function of
# triton-inference-server/tensorrt_backend, src/instance_state.cc or src/tensorrt_utils.cc (commit e2ef6d7). The backend
# itself has loaded none of our packages yet.

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from engine.kit.onnx.onnx_files import Input
from engine.kit.triton import fields, loading
from engine.kit.triton.config import Config, Signature
from engine.runtimes.backends import Backend
from engine.runtimes.triton_tensors import TYPES

if TYPE_CHECKING:
    from engine.feasibility.triton import ConfigTensor

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
    from engine.feasibility import triton

    batched = config.max_batch_size > 0
    about = replace(
        fields.described(config, on_gpu=True, profiles=max(1, profiles)),
        backend=Backend.TENSORRT,
        inputs=_tensors(signature.inputs, shape_tensors, batched=batched),
        outputs=_tensors(signature.outputs, shape_tensors, batched=batched),
    )
    yield from triton.problems(loading.as_fields(config), about)
    for name, tensor in {**signature.inputs, **signature.outputs}.items():
        if batched and name not in shape_tensors and not isinstance(next(iter(tensor.shape), 0), str):
            yield f"the engine's tensor {name!r} has shape {[*tensor.shape]}, and no batch (CompareDimsSupported)"
    for tensor in config.input:
        if tensor.is_shape_tensor and tensor.name not in shape_tensors:
            yield f"the engine's tensor {tensor.name!r} is marked as a shape tensor, and is none (ValidateIO)"
        elif tensor.name in shape_tensors and not tensor.is_shape_tensor:
            yield f"the engine's shape tensor {tensor.name!r} is not marked as one (ValidateIO)"
        if tensor.name in shape_tensors and tensor.name in signature.inputs:
            dims = list(tensor.reshape.shape if tensor.HasField("reshape") else tensor.dims)
            yield from _values(tensor.name, signature.inputs[tensor.name], dims, batched=batched)


def _tensors(tensors: Mapping[str, Input], shape_tensors: Sequence[str], *, batched: bool) -> dict[str, ConfigTensor]:
    """Return the engine's tensors in the terms of config.pbtxt; `_values` has the rules for dims of shape tensors."""
    from engine.feasibility.triton import ConfigTensor

    dims = {
        name: tuple(size if isinstance(size, int) else _ANY for size in each.shape) for name, each in tensors.items()
    }
    return {
        name: ConfigTensor(TYPES.get(each.dtype), None if name in shape_tensors else dims[name][batched:])
        for name, each in tensors.items()
    }


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
