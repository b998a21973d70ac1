"""Triton fields: what a recipe says under `package.triton`, verbatim, into a ModelConfig."""

from __future__ import annotations

from collections.abc import Mapping
from difflib import get_close_matches
from typing import Any

from engine.errors import StepError

Config = Any
"""A `ModelConfig`, the protobuf message that Triton reads as config.pbtxt."""


def check_overrides(overrides: Mapping[str, Any]) -> None:
    """Raise StepError for a field that Triton's ModelConfig does not have, or a value that does not fit it."""
    from tritonclient.grpc import model_config_pb2

    merge(model_config_pb2.ModelConfig(), overrides)


def merge(config: Config, overrides: Mapping[str, Any]) -> None:
    """Put fields, as YAML has them, into `config`: the recipe's word stands over ours.

    A message (`optimization`, `dynamic_batching`) is merged field by field, a map (`parameters`) key by key, a list
    (`instance_group`) is replaced, and `null` takes a field out. Raises StepError, as `check_overrides` does.
    """
    from google.protobuf import json_format

    given = {name: value for name, value in overrides.items() if value is not None}
    _refuse_unknown(config.DESCRIPTOR, overrides, "package.triton")
    try:
        wanted = json_format.ParseDict(given, type(config)())
    except json_format.ParseError as error:
        raise StepError(
            "a field under package.triton has a value that Triton's ModelConfig cannot hold",
            [str(error)],
            "fields and values are those of config.pbtxt: model_config.proto in triton-inference-server/common",
        ) from error
    for name in overrides:
        field = _field(config.DESCRIPTOR, name)
        if name not in given or (_is_repeated(field) and not _is_map(field)):
            config.ClearField(field.name)
    config.MergeFrom(wanted)
    for name, value in given.items():  # an empty message says something, too: dynamic_batching: {}
        field = _field(config.DESCRIPTOR, name)
        if value == {} and field.message_type is not None and not _is_repeated(field):
            getattr(config, field.name).SetInParent()


def _refuse_unknown(message: Any, given: Mapping[str, Any], where: str) -> None:
    for name, value in given.items():
        field = _field(message, name)
        if field is None:
            near = get_close_matches(str(name), message.fields_by_name, n=3)
            hint = f"did you mean {' or '.join(near)}?" if near else f"it has: {', '.join(message.fields_by_name)}"
            raise StepError(f"Triton's {message.name} has no field {name!r}", [f"at {where}.{name}"], hint)
        for inner, place in _messages(field, value, f"{where}.{name}"):
            _refuse_unknown(field.message_type.fields_by_name["value"].message_type if _is_map(field) else
                            field.message_type, inner, place)  # fmt: skip


def _messages(field: Any, value: Any, where: str) -> list[tuple[Mapping[str, Any], str]]:
    """Return the mappings in a value that must be messages themselves, each with its place."""
    if field.message_type is None:
        return []
    if _is_map(field):
        if field.message_type.fields_by_name["value"].message_type is None or not isinstance(value, Mapping):
            return []
        return [(inner, f"{where}.{key}") for key, inner in value.items() if isinstance(inner, Mapping)]
    if isinstance(value, Mapping):
        return [(value, where)]
    listed = value if isinstance(value, list | tuple) else ()
    return [(inner, f"{where}[{number}]") for number, inner in enumerate(listed) if isinstance(inner, Mapping)]


def _field(message: Any, name: str) -> Any:
    return message.fields_by_name.get(name) or message.fields_by_camelcase_name.get(name)


def _is_map(field: Any) -> bool:
    return field.message_type is not None and bool(field.message_type.GetOptions().map_entry)


def _is_repeated(field: Any) -> bool:
    return bool(field.is_repeated)
