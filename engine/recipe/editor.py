"""The JSON Schema of a recipe file, with its short forms, for editors."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any, get_args

from engine.recipe import triton_schema
from engine.recipe.extends import VERSION, VERSION_FIELD
from engine.recipe.model_config import Part
from engine.recipe.schema import Recipe

_SECTION = re.compile(r"\b(Bench|Graph|Package|Target|TensorRT)Section\b")
_SIZE = {"type": "integer", "minimum": 1, "maximum": 1_000_000}
_NUMBER = {"type": "number"}
_BY_INPUT = {"type": "string", "pattern": "^[0-9]+(x[0-9]+)*$"}

_SHORT_FORMS: Mapping[str, list[dict[str, Any]]] = {
    "Range": [
        _SIZE,
        {"type": "array", "items": _SIZE, "minItems": 3, "maxItems": 3},
        _BY_INPUT,  # trtexec's form of a profile names shapes by input
        {"type": "array", "items": _BY_INPUT, "minItems": 3, "maxItems": 3},
    ],
    "Bound": [_NUMBER],
    "Metric": [_NUMBER],
}
"""What may stand for a mapping, by the definition that has it."""


def editor_schema() -> dict[str, Any]:
    """Return the schema of what a user types: with `recipe`, `extends`, `matrix`, and short forms."""
    schema = _with_published_names(Recipe.model_json_schema(by_alias=True, ref_template="#/$defs/{model}"))
    definitions = schema["$defs"]
    for name, forms in _SHORT_FORMS.items():
        definitions[name] = {"anyOf": [definitions[name], *forms]}
    definitions |= triton_schema.definitions()
    definitions["Triton"] = _with_tritons_fields(definitions["Triton"])
    definitions["Shape"] = _shape(definitions["Shape"])
    schema["properties"] |= {"extends": {"type": "string", "description": "A recipe to lay this one over."}}
    schema["properties"] |= {"matrix": _matrix()}
    schema["properties"] |= {VERSION_FIELD: {"const": VERSION, "description": "The version of the recipe language."}}
    # A variant's name has places: minilm-${target.device}.
    schema["properties"]["name"] = {"type": "string", "minLength": 1, "maxLength": 512}
    needed = schema.pop("required")
    schema["anyOf"] = [{"required": ["extends"]}, {"required": ["matrix"]}, {"required": needed}]
    for owner, field in (("", "profiles"), ("Bench", "shapes"), ("Bench", "against"), ("Graph", "profiles")):
        properties = definitions[owner]["properties"] if owner else schema["properties"]
        properties[field] = _or_one(properties[field])
    for name in schema["properties"].keys() - {"name", "model", "matrix", "extends", VERSION_FIELD}:
        schema["properties"][name] = _or_nothing(schema["properties"][name])
    return schema | {"$schema": "https://json-schema.org/draft/2020-12/schema", "title": "A recipe"}


def _with_published_names(schema: dict[str, Any]) -> dict[str, Any]:
    """Return the schema with the definitions under their published names: `Bench` for the class BenchSection."""
    renamed: dict[str, Any] = json.loads(_SECTION.sub(r"\1", json.dumps(schema)))
    return renamed


def _with_tritons_fields(schema: dict[str, Any]) -> dict[str, Any]:
    """Return the schema of `package.triton` with ModelConfig's own fields, also under each model that it names."""
    config = {"$ref": "#/$defs/Triton.ModelConfig"}
    models = {
        "type": "object",
        "description": "ModelConfig's fields for the other models of the package.",
        "properties": dict.fromkeys(get_args(Part), config),
        "additionalProperties": False,
    }
    properties = {**triton_schema.fields("ModelConfig"), **schema["properties"], "models": models}
    return {**schema, "properties": properties, "additionalProperties": False}


def _shape(schema: Mapping[str, Any]) -> dict[str, Any]:
    budget = schema["properties"]["budget"]
    return {
        "type": "object",
        "description": schema["description"],
        "properties": {"budget": budget},
        "additionalProperties": _SIZE,
    }


def _matrix() -> dict[str, Any]:
    rules = {"type": "array", "items": {"type": "object"}, "maxItems": 256}
    return {
        "type": "object",
        "description": "Lists of values by path, as target.device: each combination is a recipe of its own.",
        "properties": {"include": rules, "exclude": rules},
        "additionalProperties": {"type": "array", "minItems": 1},
        "minProperties": 1,
    }


def _or_nothing(schema: Mapping[str, Any]) -> dict[str, Any]:
    """Return a field's schema that takes null, too: over a parent's it removes the field."""
    about = {key: schema[key] for key in ("title", "description", "default") if key in schema}
    return {**about, "anyOf": [{k: v for k, v in schema.items() if k not in about}, {"type": "null"}]}


def _or_one(schema: Mapping[str, Any]) -> dict[str, Any]:
    """Return a list's schema that takes a single item without its dash, too."""
    about = {key: schema[key] for key in ("title", "description", "default") if key in schema}
    return {**about, "anyOf": [{k: v for k, v in schema.items() if k not in about}, schema["items"]]}
