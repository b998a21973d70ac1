"""What Triton refuses when it loads a package: Triton's rules, asked about every package that is written."""

# The rules for one model stand in feasibility/triton. The rules here are about an ensemble and its models. Source:
# triton-inference-server/core (commit 73aad7c), ValidateEnsembleSchedulingConfig in src/model_config_utils.cc and
# ValidateTensorMapping in src/ensemble_scheduler/ensemble_utils.cc. Rules that need the server's GPUs are nowhere.

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from engine.errors import StepError
from engine.kit.onnx.onnx_files import Input
from engine.kit.triton import fields
from engine.kit.triton.config import Config, Signature
from engine.recipe.model_config import MODEL_VERSION
from engine.runtimes.backends import Backend
from engine.runtimes.triton_tensors import TYPES

if TYPE_CHECKING:
    from engine.feasibility.triton import ConfigTensor

_ENSEMBLE = "ensemble"
_LATEST = -1
"""What a step of an ensemble names for the latest version of a model."""
_ANY = -1
_OF_SIZES = ("int32", "int64")
"""The types of a shape tensor."""


def refuse(configs: Sequence[Config]) -> None:
    """Raise StepError where Triton would refuse to load a model of a repository, given by all its configurations."""
    from engine.feasibility import triton  # `check` does not wait for this import

    by_name = {config.name: config for config in configs}
    facts: list[str] = []
    for config in configs:
        on_gpu = any(group.kind == group.KIND_GPU for group in config.instance_group)
        problems = [*triton.problems(as_fields(config), fields.described(config, on_gpu=on_gpu))]
        if config.platform == _ENSEMBLE:
            problems += [*_graph_of_ensemble(config), *_mapped(config, by_name)]
        facts += [f"{config.name}: {problem}" for problem in problems]
    refuse_problems(facts)


def refuse_problems(facts: Sequence[str]) -> None:
    """Raise StepError where there are problems."""
    if facts:
        raise StepError(
            "Triton would refuse to load a model of the package",
            facts,
            "change the fields under package.triton that the problem names; without such a field, please report it",
        )


def as_fields(config: Config) -> Mapping[str, Any]:
    """Return the fields of a configuration as a recipe would write them."""
    from google.protobuf import json_format

    named: dict[str, Any] = json_format.MessageToDict(config, preserving_proto_field_name=True)
    return named


def _graph_of_ensemble(config: Config) -> Iterator[str]:
    """Yield the problems between the tensors of an ensemble and those that its steps read and write."""
    steps = config.ensemble_scheduling.step
    if not steps:
        yield "an ensemble has at least one step"
    given = [tensor.name for tensor in config.input]
    written = [name for step in steps for name in step.output_map.values()]
    used = {name for step in steps for name in step.input_map.values()}
    for name in given:
        if name not in used:
            yield f"input {name!r} is not used"
    for name in sorted({name for name in [*given, *written] if [*given, *written].count(name) > 1}):
        yield f"tensor {name!r} is written more than once"
    for name in sorted(used - {*given, *written}):
        yield f"tensor {name!r} is read, and nothing writes it"
    for tensor in config.output:
        if tensor.name not in written:
            yield f"output {tensor.name!r} is written by no step"
    for name in sorted(set(written) - used - {tensor.name for tensor in config.output}):
        yield f"tensor {name!r} is written, and nothing reads it"


def _mapped(config: Config, by_name: Mapping[str, Config]) -> Iterator[str]:
    """Yield the problems between an ensemble and the models of its steps."""
    for step in config.ensemble_scheduling.step:
        model = by_name.get(step.model_name)
        if model is None:
            yield f"its step {step.model_name!r} is no model of the repository"
            continue
        if step.model_version not in {_LATEST, MODEL_VERSION}:
            yield f"its step {model.name!r} names version {step.model_version}, and the repository has {MODEL_VERSION}"
        if config.max_batch_size > model.max_batch_size:
            yield f"max_batch_size: {config.max_batch_size} is more than {model.max_batch_size}, that of {model.name}"
        for name in sorted(set(step.input_map) - {tensor.name for tensor in model.input}):
            yield f"{model.name} has no input {name!r}"
        for name in sorted(set(step.output_map) - {tensor.name for tensor in model.output}):
            yield f"{model.name} has no output {name!r}"
        for tensor in model.input:
            if tensor.name not in step.input_map and not tensor.optional:
                yield f"the input {tensor.name!r} of {model.name} gets nothing"
    yield from _types(config, by_name)


def _types(config: Config, by_name: Mapping[str, Config]) -> Iterator[str]:
    """Yield the tensors of an ensemble that have different types in different models."""
    types = {tensor.name: tensor.data_type for tensor in (*config.input, *config.output)}
    for step in config.ensemble_scheduling.step:
        if step.model_name not in by_name:
            continue
        model = by_name[step.model_name]
        for names, tensors in ((step.input_map, model.input), (step.output_map, model.output)):
            for tensor in tensors:
                name = names.get(tensor.name)
                if name and types.setdefault(name, tensor.data_type) != tensor.data_type:
                    yield f"tensor {name!r} has another data_type in {model.name}"


# The rules of feasibility/triton compare the configuration with the engine's own tensors, profiles and CUDA graphs. The
# rules here are about the batch axis and about shape tensors. Source of each: a function of
# triton-inference-server/tensorrt_backend, src/instance_state.cc or src/tensorrt_utils.cc (commit e2ef6d7). The backend
# itself has loaded none of our packages yet.


def engine_problems(
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
    yield from triton.problems(as_fields(config), about)
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
