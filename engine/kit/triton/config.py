"""Config: the configuration of a model for Triton, as a protobuf message."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from engine.errors import StepError
from engine.kit.onnx.onnx_files import Input
from engine.runtimes.backends import BY_POSITION, WITHOUT_NUMBERS, Backend
from engine.runtimes.triton_tensors import TYPES, is_batch
from engine.text import lists

Config = Any
"""A `ModelConfig`, the protobuf message that Triton reads as config.pbtxt."""
FILE = "config.pbtxt"

_GRAPH_LEVELS = {"basic": -1, "extended": 1, "disabled": 2}
"""Name of ONNX Runtime's optimization level -> its number in `optimization.graph.level`.

Triton's default is the level `all`. Source: README of triton-inference-server/onnxruntime_backend, "Model Config
Options".
"""


@dataclass(frozen=True)
class Signature:
    """The inputs and the outputs of a model, by name."""

    inputs: Mapping[str, Input]
    outputs: Mapping[str, Input]
    optional: Mapping[str, Input] = field(default_factory=dict)
    """The inputs that a request may leave out; a model with such inputs takes no batches.

    Source: triton-inference-server/onnxruntime_backend, `ModelInstanceState::ValidateInputs`.
    """

    @property
    def batch_axis(self) -> str | None:
        """The axis without a fixed size that comes first in every input and output; None without such an axis.

        The name of the axis must say that the axis is a batch. The first axis of a recurrent model may be time, and
        Triton must not join requests along the time axis.
        """
        tensors = [*self.inputs.values(), *self.outputs.values()]
        axis = next(iter(self.inputs.values())).shape[:1]
        if self.optional or not axis or not isinstance(axis[0], str) or not is_batch(axis[0]):
            return None
        unnamed = ((f"{tensor.name}_0",) for tensor in self.outputs.values())
        own = {axis, *unnamed}
        return axis[0] if all(tensor.shape[:1] in own for tensor in tensors) else None

    @property
    def can_batch(self) -> bool:
        """Whether every input and output begins with an axis without a fixed size, and no input is optional."""
        return not self.optional and all(
            tensor.shape and isinstance(tensor.shape[0], str)
            for tensor in (*self.inputs.values(), *self.outputs.values())
        )


def max_batch(signature: Signature, requested: int | None, largest: Mapping[str, int]) -> int:
    """Return Triton's max_batch_size; 0 means that Triton joins no requests.

    With max_batch_size 0 the shapes in the configuration have all axes; otherwise the shapes leave out the batch axis.

    `requested` is the recipe's `max_batch_size`. `largest` is the greatest extent of each axis in the profiles.
    Raises StepError where the recipe requests batches of a model without a free first axis.
    """
    if requested is None:
        axis = signature.batch_axis
        return largest.get(axis, 0) if axis is not None else 0
    if requested and not signature.can_batch:
        tensors = (*signature.inputs.values(), *signature.optional.values(), *signature.outputs.values())
        raise StepError(
            f"the model cannot be served with max_batch_size: {requested}",
            [f"{tensor.name}: {lists.extents(tensor.shape)}" for tensor in tensors],
            "batches need a free first axis in every input and output, and no optional input; use max_batch_size: 0",
        )
    return requested


def model_config(
    name: str,
    signature: Signature,
    *,
    backend: Backend,
    batch: int,
    level: str = "all",
    gpu: bool = False,
) -> Config:
    """Return the configuration of the built model itself, without the models around it.

    `backend` is the backend that runs the model, `batch` is the max_batch_size, `level` ONNX Runtime's optimization
    level, and `gpu` tells whether the instances run on GPUs. Raises StepError for a tensor that Triton cannot describe.
    """
    if not batch and backend in WITHOUT_NUMBERS:
        _refuse_numbers(signature, backend)
    config = named(name, batch)
    config.platform = backend.platform
    if not backend.platform or backend in BY_POSITION:  # that backend has several platforms
        config.backend = backend.backend
    for tensor in signature.inputs.values():
        _describe(config.input.add(), tensor, batched=batch > 0)
    for tensor in signature.optional.values():
        _describe(config.input.add(optional=True), tensor, batched=False)
    for tensor in signature.outputs.values():
        _describe(config.output.add(), tensor, batched=batch > 0)
    group = config.instance_group.add()
    group.count = 1
    group.kind = type(group).KIND_GPU if gpu else type(group).KIND_CPU
    if batch > 1:
        join_requests(config)
    if level in _GRAPH_LEVELS:
        config.optimization.graph.level = _GRAPH_LEVELS[level]
    return config


def join_requests(config: Config) -> None:
    """Let Triton join requests, in a queue without a limit and without a timeout.

    Either of them makes Triton wait up to half a second before it looks at requests that came while the model computed.
    Source: triton-inference-server/core, `PriorityQueue::SupportPrefetching` and `DynamicBatchScheduler::Enqueue`.
    """
    config.dynamic_batching.SetInParent()


def as_text(config: Config) -> str:
    """Return the text of config.pbtxt. Equal configurations have equal texts."""
    from google.protobuf import text_format

    return str(text_format.MessageToString(config, as_utf8=True))


def read(folder: Path, *, allow_unknown_field: bool = False) -> Config:
    """Return the configuration in a model's folder of a repository.

    With `allow_unknown_field`, fields of the file that the installed tritonclient does not know are left out. Raises
    OSError for a file that cannot be read, and ValueError for a text that is no configuration.
    """
    from google.protobuf import text_format
    from tritonclient.grpc import model_config_pb2

    text = (folder / FILE).read_text("utf-8")
    try:
        return text_format.Parse(text, model_config_pb2.ModelConfig(), allow_unknown_field=allow_unknown_field)
    except text_format.ParseError as error:
        raise ValueError(str(error)) from error


def named(name: str, batch: int) -> Config:
    """Return a new configuration with a name and a max_batch_size."""
    from tritonclient.grpc import model_config_pb2

    return model_config_pb2.ModelConfig(name=name, max_batch_size=batch)


def dtype(triton_type: str) -> str:
    """Return numpy's name of one of Triton's datatypes: "int64" for TYPE_INT64."""
    return next(name for name, triton_name in TYPES.items() if triton_name == triton_type)


def _describe(field: Any, tensor: Input, *, batched: bool) -> None:
    """Write a tensor's name, type and shape into `field`; with `batched` the written shape leaves out the first axis.

    `field` is an input or output of a configuration. Raises StepError for a tensor that Triton cannot describe.
    """
    from tritonclient.grpc import model_config_pb2

    if tensor.dtype not in TYPES or not tensor.ranked:
        why = "its shape is not known" if not tensor.ranked else f"its type is {tensor.dtype}"
        raise StepError(
            f"Triton cannot describe the model's tensor {tensor.name}",
            [why],
            "export the model with plain typed shapes",
        )
    field.name = tensor.name
    field.data_type = model_config_pb2.DataType.Value(TYPES[tensor.dtype])
    shape = tensor.shape[1:] if batched else tensor.shape
    if shape:
        field.dims.extend(size if isinstance(size, int) else -1 for size in shape)
        return
    # Triton has no tensors without dimensions: clients send [1]. Where Triton joins requests, the model gets a number
    # for each row; elsewhere `reshape` may not be empty, and the backend makes the number.
    field.dims.append(1)
    if batched:
        field.reshape.SetInParent()


def _refuse_numbers(signature: Signature, backend: Backend) -> None:
    """Raise StepError for a tensor without axes, which the backend serves only where Triton joins requests."""
    tensors = (*signature.inputs.values(), *signature.outputs.values())
    if names := [tensor.name for tensor in tensors if tensor.ranked and not tensor.shape]:
        raise StepError(
            f"Triton's {backend.backend} backend serves no tensor without axes",
            [f"{name}: {lists.extents(())}" for name in names],
            "give the tensor an axis of size 1 in the ONNX model, or use runtime: onnxruntime",
        )
