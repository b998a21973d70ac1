"""Triton fields: the fields under `package.triton` of a recipe, merged into the configurations of its package."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, Literal, cast

from engine.errors import StepError
from engine.kit.triton.config import Config
from engine.kit.triton.serving import Serving
from engine.recipe.model_config import GRAPH_PARTS, PartName
from engine.runtimes.backends import ON_GPU, Backend

if TYPE_CHECKING:
    from engine.feasibility.triton import About, ConfigTensor


def overridden(
    config: Config, serving: Serving, part: Literal["model"] | PartName, *, profiles: int | None = None
) -> None:
    """Merge the recipe's fields for a model of the package into the model's configuration; the recipe's fields win.

    `part` is "model", or a name under `package.triton.models`. `profiles` is the number of profiles of a TensorRT
    engine. Fields directly under `package.triton` are merged for `part` "model", "encoder" and "decoder".
    Raises StepError for a field that Triton would refuse or ignore.
    """
    from engine.feasibility import triton  # a recipe without overrides does not wait for this import

    for where, overrides in _sections(serving, part):
        try:
            about = described(config, on_gpu=serving.execution.on_gpu, part=part, profiles=profiles)
            triton.check(overrides, about)
        except triton.Fault as fault:
            place = ".".join(str(segment) for segment in (where, *fault.path))
            raise StepError(fault.what, [f"at {place}", *fault.facts], fault.hint) from None
        merge(config, overrides)
    _set_devices(config, on_gpu=serving.execution.on_gpu and part in GRAPH_PARTS)


def _set_devices(config: Config, *, on_gpu: bool) -> None:
    """Set the kind of each instance group, KIND_CPU or KIND_GPU, by the package's device, unless the recipe sets it.

    With Triton's default, KIND_AUTO, Triton would run instances on every GPU of the server, and the instances of a
    TensorRT engine would use only the engine's first profile.
    """
    if config.platform == "ensemble":
        return
    if not config.instance_group:
        config.instance_group.add(count=1)
    for group in config.instance_group:
        if group.kind == group.KIND_AUTO:
            group.kind = group.KIND_GPU if on_gpu or group.gpus else group.KIND_CPU


def says(serving: Serving, part: Literal["model"] | PartName, field: str) -> bool:
    """Tell whether the recipe sets a field in the configuration of a model of the package."""
    return any(field in overrides for _, overrides in _sections(serving, part))


def lists_output(serving: Serving, name: str) -> bool:
    """Tell whether the recipe lists an output of the built model by its name."""
    outputs = (output for _, overrides in _sections(serving, "model") for output in overrides.get("output") or ())
    return any(isinstance(output, Mapping) and output.get("name") == name for output in outputs)


def refuse_unused(serving: Serving, parts: Collection[str]) -> None:
    """Raise StepError where the recipe overrides a model that is not in `parts`, the models of the package."""
    for part in serving.models:
        if part not in parts:
            raise StepError(
                f"package.triton.models overrides the {part}, but the package has no such model",
                [f"models to override: {', '.join(sorted(parts)) or 'none'}"],
                "remove the section; fields of the model itself stand directly under package.triton",
            )


def merge(config: Config, overrides: Mapping[str, Any]) -> None:
    """Merge `overrides`, fields of a recipe, into `config`.

    A message of the recipe (`optimization`, `dynamic_batching`) is merged into `config` field by field, and a map
    (`parameters`) key by key. A list of the recipe (`instance_group`) replaces the list in `config`. A field that is
    `null` in the recipe is removed from `config`. Raises StepError where protobuf refuses a value.
    """
    from google.protobuf import json_format

    try:
        message = json_format.ParseDict(_without_nulls(overrides), type(config)())
    except json_format.ParseError as error:
        raise StepError(
            "a field under package.triton has a value that Triton's ModelConfig cannot hold",
            [str(error)],
            "fields and values are those of config.pbtxt: model_config.proto in triton-inference-server/common",
        ) from error
    _make_room(config, overrides)
    config.MergeFrom(message)


def _make_room(config: Config, overrides: Mapping[str, Any]) -> None:
    """Clear the fields that the overrides remove or replace, and set the messages that are empty in the overrides."""
    for name, value in overrides.items():
        field = config.DESCRIPTOR.fields_by_name[name]
        is_map = field.message_type is not None and field.message_type.GetOptions().map_entry
        if value is None or (field.is_repeated and not is_map):
            config.ClearField(name)
        elif is_map:
            for key, inner in value.items():
                if inner is None:
                    getattr(config, name).pop(key, None)
        elif field.message_type is None:
            config.ClearField(name)  # MergeFrom skips false and 0, and would leave the old value
        else:
            if field.containing_oneof is not None and config.WhichOneof(field.containing_oneof.name) != name:
                config.ClearField(field.containing_oneof.name)
            getattr(config, name).SetInParent()
            _make_room(getattr(config, name), value)


def _without_nulls(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {name: _without_nulls(inner) for name, inner in value.items() if inner is not None}
    return [_without_nulls(item) for item in value] if isinstance(value, list | tuple) else value


def _sections(serving: Serving, part: str) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Yield the path of each section of the recipe that configures the model `part`, and the fields in the section."""
    if part in GRAPH_PARTS and serving.fields:
        yield "package.triton", serving.fields
    if part in serving.models:
        yield f"package.triton.models.{part}", serving.models[cast("PartName", part)]


def described(
    config: Config, *, on_gpu: bool, part: Literal["model"] | PartName = "model", profiles: int | None = None
) -> About:
    """Return the description of a model by its configuration, for the rules of Triton."""
    from tritonclient.grpc import model_config_pb2

    from engine.feasibility.triton import About, ConfigTensor

    def tensors(listed: Iterable[Any]) -> dict[str, ConfigTensor]:
        name_of = model_config_pb2.DataType.Name
        return {
            tensor.name: ConfigTensor(
                name_of(tensor.data_type),
                tuple(tensor.reshape.shape if tensor.HasField("reshape") else tensor.dims),
                sent=tuple(tensor.dims),
                optional=getattr(tensor, "optional", False),  # only inputs have this field
            )
            for tensor in listed
        }

    accelerators = {each.name for each in config.optimization.execution_accelerators.gpu_execution_accelerator}
    return About(
        backend=Backend.of(platform=config.platform, backend=config.backend),
        part=part,
        name=config.name,
        on_gpu=on_gpu,
        accelerator=next((each for each in ON_GPU if each in accelerators), None),
        batch=config.max_batch_size,
        most=config.max_batch_size,
        profiles=profiles,
        cuda_graphs=config.optimization.cuda.graphs,
        decoupled=config.model_transaction_policy.decoupled,
        inputs=tensors(config.input),
        outputs=tensors(config.output),
        parameters={name: value.string_value for name, value in config.parameters.items()},
    )
