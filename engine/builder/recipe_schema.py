"""The JSON Schema of recipes on this machine: that of the recipe language, with the options of installed packages."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from engine.builder import registry
from engine.recipe.editor import editor_schema
from engine.runtimes import registry as runtimes
from engine.step import Step


def recipe_schema() -> dict[str, Any]:
    """Return the JSON Schema of a recipe file, for editors.

    Under `steps` and `runtimes`, it has the options of the steps and runtimes that other installed packages bring.
    Raises StepError where such a package cannot be loaded.
    """
    schema: dict[str, Any] = editor_schema()
    options = {name: each.options_model for name, each in runtimes.runtimes().items() if each.options_model is not None}
    for section, models in (("steps", _steps()), ("runtimes", options.items())):
        of_names = next(form for form in schema["properties"][section]["anyOf"] if form.get("type") == "object")
        for name, model in models:
            own = _of_model(model, f"{section}.{name}")
            schema["$defs"] |= own.pop("$defs", {})
            of_names.setdefault("properties", {})[name] = own
    return schema


def _steps() -> Iterator[tuple[str, Any]]:
    """Yield the steps whose options stand under `steps`, by name: those that do not read other fields of a recipe."""
    for name, step in registry.steps().items():
        if getattr(step.for_recipe, "__func__", None) is getattr(Step.for_recipe, "__func__", None):
            yield name, step


def _of_model(model: Any, prefix: str) -> dict[str, Any]:
    """Return the schema of a pydantic model, whose definitions have names with a prefix."""
    from pydantic.errors import PydanticInvalidForJsonSchema

    try:
        schema: Mapping[str, Any] = model.model_json_schema(ref_template=f"#/$defs/{prefix}.{{model}}")
    except PydanticInvalidForJsonSchema:  # a type of the package's own, about which a JSON Schema says nothing
        return {"type": "object"}
    definitions = {f"{prefix}.{name}": each for name, each in schema.get("$defs", {}).items()}
    return {**schema, **({"$defs": definitions} if definitions else {})}
