"""The JSON Schema of a recipe file for editors, with all short forms and all fields of Triton's ModelConfig."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any, get_args

from engine.recipe import descriptions, extends
from engine.recipe.extends import VERSION, VERSION_FIELD
from engine.recipe.fields import LARGEST_SIZE, OF_SAMPLES
from engine.recipe.matrix import MAX_RULES
from engine.recipe.model_config import ENUMS, INTEGER_BOUNDS, MESSAGES, ONE_OF, PartName
from engine.recipe.schema import Recipe
from engine.recipe.shape_values import Values

_SECTION = re.compile(r"\b(Answers|Bench|Graph|Package|Rival|Target|TensorRT)Section\b")
"""Matches the names of classes that the JSON Schema calls by a shorter name: BenchSection is called `Bench`."""
_TRITON = "Triton."
"""The start of the names of definitions that are messages of Triton's ModelConfig."""
_SIZE = {"type": "integer", "minimum": 1, "maximum": LARGEST_SIZE}
_NUMBER = {"type": "number"}
_BY_INPUT = {"type": "string", "pattern": "^[0-9]+(x[0-9]+)*$"}
_WHOLE_TEXT = {"type": "string", "pattern": "^-?[0-9]+$"}

_SHORT_FORMS: Mapping[str, list[dict[str, Any]]] = {
    "Range": [
        _SIZE,
        {"type": "array", "items": _SIZE, "minItems": 3, "maxItems": 3},
        _BY_INPUT,  # a profile in the form of trtexec: shapes by input
        {"type": "array", "items": _BY_INPUT, "minItems": 3, "maxItems": 3},
    ],
    "Bound": [_NUMBER],
    "Metric": [_NUMBER],
}
"""Name of a definition in the JSON Schema -> the short forms that a recipe may have in place of a mapping."""


def editor_schema() -> dict[str, Any]:
    """Return the schema of a recipe as users type it: with `recipe`, `extends`, `matrix`, and short forms."""
    schema = _with_published_names(Recipe.model_json_schema(by_alias=True, ref_template="#/$defs/{model}"))
    definitions = schema["$defs"]
    for name, forms in _SHORT_FORMS.items():
        definitions[name] = {"anyOf": [definitions[name], *forms]}
    definitions["Values"] = _values()
    entries = schema["properties"]["profiles"]["items"]["patternProperties"]
    schema["properties"]["profiles"]["items"]["patternProperties"] = {
        name: {"anyOf": [axis, {"$ref": "#/$defs/Values"}]} for name, axis in entries.items()
    }
    definitions |= _messages()
    definitions["Triton"] = _with_tritons_fields(definitions["Triton"])
    definitions["Shape"] = _shape(definitions["Shape"])
    schema["properties"] |= {"extends": {"type": "string", "description": "The path of the parent recipe."}}
    schema["properties"] |= {"matrix": _matrix()}
    about = "Whether the file is only extended by other recipes and makes no package of its own."
    schema["properties"] |= {extends.ABSTRACT: {"type": "boolean", "default": False, "description": about}}
    schema["properties"] |= {VERSION_FIELD: {"const": VERSION, "description": "The version of the recipe language."}}
    # The name of a recipe with a matrix may have placeholders: minilm-${target.device}.
    schema["properties"]["name"] = {"type": "string", "minLength": 1, "maxLength": 512}
    needed = schema.pop("required")
    is_abstract = {"properties": {extends.ABSTRACT: {"const": True}}, "required": [extends.ABSTRACT]}
    schema["anyOf"] = [{"required": ["extends"]}, {"required": ["matrix"]}, is_abstract, {"required": needed}]
    for owner, field in (("", "profiles"), ("Bench", "shapes"), ("Bench", "against"), ("Graph", "profiles")):
        properties = definitions[owner]["properties"] if owner else schema["properties"]
        properties[field] = _or_one(properties[field])
    for name in schema["properties"].keys() - {"name", "model", "matrix", "extends", VERSION_FIELD, extends.ABSTRACT}:
        schema["properties"][name] = _or_nothing(schema["properties"][name])
    _describe(schema)
    return schema | {"$schema": "https://json-schema.org/draft/2020-12/schema", "title": "A recipe"}


def _describe(schema: dict[str, Any]) -> None:
    """Add to each field of the schema what it means, and examples of its values."""
    places = {"": schema, "matrix": schema["properties"]["matrix"], **schema["$defs"]}
    for name, fields in descriptions.FIELDS.items():
        properties = _properties(places[name])
        for field, about in fields.items():
            given = {"description": about.text, **({"examples": list(about.examples)} if about.examples else {})}
            properties[field] = {**properties[field], **given}
    for name, definition in schema["$defs"].items():
        if name == "Triton" or name.startswith(_TRITON):
            message = name.removeprefix(_TRITON).replace("Triton", "ModelConfig")
            for field, about in _properties(definition).items():
                words = f"Triton's field {message}.{field}: {descriptions.TRITON}"
                _properties(definition)[field] = {"description": words, **about}
    for part, about in _properties(_properties(schema["$defs"]["Triton"])["models"]).items():
        about_part = f"Fields of ModelConfig for the model {part!r} of the package."
        _properties(_properties(schema["$defs"]["Triton"])["models"])[part] = {"description": about_part, **about}


def _properties(schema: Mapping[str, Any]) -> dict[str, Any]:
    """Return the fields of a section of the schema, which may have short forms beside it."""
    sections = (schema, *schema.get("anyOf", ()))
    properties: dict[str, Any] = next((each["properties"] for each in sections if "properties" in each), {})
    return properties


def _with_published_names(schema: dict[str, Any]) -> dict[str, Any]:
    """Return the schema in which the name of each class is replaced by its published name: BenchSection by `Bench`."""
    renamed: dict[str, Any] = json.loads(_SECTION.sub(r"\1", json.dumps(schema)))
    return renamed


def _with_tritons_fields(schema: dict[str, Any]) -> dict[str, Any]:
    """Return the schema of `package.triton` with the fields of ModelConfig, also for each entry of `models`."""
    config = {"$ref": "#/$defs/Triton.ModelConfig"}
    models = {
        "type": "object",
        "description": "ModelConfig's fields for the other models of the package.",
        "properties": dict.fromkeys(get_args(PartName), config),
        "additionalProperties": False,
    }
    properties = {**_fields("ModelConfig"), **schema["properties"], "models": models}
    return {**schema, "properties": properties, "additionalProperties": False}


def _values() -> dict[str, Any]:
    """Return the schema of an input's values in a profile, also as a list of three lists."""
    schema = Values.model_json_schema()
    return {"anyOf": [schema, {"type": "array", "items": schema["properties"]["min"], "minItems": 3, "maxItems": 3}]}


def _shape(schema: Mapping[str, Any]) -> dict[str, Any]:
    budget = schema["properties"]["budget"]
    return {
        "type": "object",
        "description": schema["description"],
        "properties": {"budget": budget},
        "additionalProperties": {"anyOf": [_SIZE, _BY_INPUT, {"const": OF_SAMPLES}]},
    }


def _matrix() -> dict[str, Any]:
    rules = {"type": "array", "items": {"type": "object"}, "maxItems": MAX_RULES}
    return {
        "type": "object",
        "description": "Paths of fields, as target.device, each with a list of values. Each combination is a variant.",
        "properties": {"include": rules, "exclude": rules},
        "additionalProperties": {"type": "array", "minItems": 1},
        "minProperties": 1,
    }


def _or_nothing(schema: Mapping[str, Any]) -> dict[str, Any]:
    """Return the JSON Schema of a field that may also be null, because null removes a field of a parent recipe."""
    about, rest = _about_and_rest(schema)
    return {**about, "anyOf": [rest, {"type": "null"}]}


def _or_one(schema: Mapping[str, Any]) -> dict[str, Any]:
    """Return the schema of a list that may also be a single item without a dash."""
    about, rest = _about_and_rest(schema)
    return {**about, "anyOf": [rest, schema["items"]]}


def _about_and_rest(schema: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """Split the schema of a field in two: title, description and default, and all other keywords."""
    about = {key: schema[key] for key in ("title", "description", "default") if key in schema}
    return about, {key: value for key, value in schema.items() if key not in about}


def _messages() -> dict[str, object]:
    """Return the schema of each protobuf message of Triton's ModelConfig, under its name with the prefix `Triton.`."""
    return {f"Triton.{name}": _message(name) for name in MESSAGES}


def _fields(message: str) -> dict[str, object]:
    """Return the JSON Schema of each field of a message of ModelConfig; a field may be null, which removes it."""
    return {name: {"anyOf": [_kind(kind), {"type": "null"}]} for name, kind in MESSAGES[message].items()}


def _message(name: str) -> dict[str, object]:
    schema: dict[str, object] = {
        "type": "object",
        "properties": _fields(name),
        "additionalProperties": False,
    }
    for group in ONE_OF.get(name, ()):
        schema["description"] = f"At most one of the fields {', '.join(group)} may be set."
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
    if kind in INTEGER_BOUNDS:
        least, most = INTEGER_BOUNDS[kind]
        return {"anyOf": [{"type": "integer", "minimum": least, "maximum": most}, _WHOLE_TEXT]}
    return {"type": {"string": "string", "bool": "boolean"}.get(kind, "number")}
