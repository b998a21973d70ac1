"""The JSON Schema of Triton's ModelConfig, for editors: every field, with its type and its choices."""

from __future__ import annotations

from engine.recipe.model_config import ENUMS, MESSAGES, ONE_OF

_WHOLE_TEXT = {"type": "string", "pattern": "^-?[0-9]+$"}
_LARGEST = {"int32": (1 << 31) - 1, "uint32": (1 << 32) - 1, "int64": (1 << 63) - 1, "uint64": (1 << 64) - 1}


def definitions() -> dict[str, object]:
    """Return all messages by their names, each behind `Triton.`."""
    return {f"Triton.{name}": _message(name) for name in MESSAGES}


def fields(message: str) -> dict[str, object]:
    """Return the fields of a message; `null` takes one out of what the package says."""
    return {name: {"anyOf": [_kind(kind), {"type": "null"}]} for name, kind in MESSAGES[message].items()}


def _message(name: str) -> dict[str, object]:
    schema: dict[str, object] = {
        "type": "object",
        "properties": fields(name),
        "additionalProperties": False,
    }
    for group in ONE_OF.get(name, ()):
        schema["description"] = f"One of {', '.join(group)} at most."
    return schema


def _kind(kind: str) -> dict[str, object]:
    if kind.startswith("["):
        return {"type": "array", "items": _kind(kind[1:-1])}
    if kind.startswith("{"):
        return {"type": "object", "additionalProperties": _kind(kind[1:-1].split(":")[1])}
    if kind in MESSAGES:
        return {"$ref": f"#/$defs/Triton.{kind}"}
    if kind in ENUMS:
        return {"enum": [choice for choice in ENUMS[kind] if choice != "TYPE_INVALID"]}
    return _scalar(kind)


def _scalar(kind: str) -> dict[str, object]:
    if kind in _LARGEST:
        most = _LARGEST[kind]
        least = 0 if kind.startswith("u") else -most - 1
        return {"anyOf": [{"type": "integer", "minimum": least, "maximum": most}, _WHOLE_TEXT]}
    return {"type": {"string": "string", "bool": "boolean"}.get(kind, "number")}
