"""Later: a section of a recipe whose validator pydantic builds when a recipe first has the section."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, Any

from pydantic import GetCoreSchemaHandler, GetJsonSchemaHandler, TypeAdapter
from pydantic_core import core_schema

if TYPE_CHECKING:
    from pydantic.json_schema import JsonSchemaValue


class Later:
    """Marks the type of a section in `Annotated`: the section is validated as without the mark, and so are its errors.

    Pydantic builds the validator of a model with the validators of all its sections. That takes longer than the
    validation of many recipes, and most recipes have few of the sections. The mark is the first of an `Annotated`: it
    replaces the validators before it, and those behind it stay.
    """

    _type: Any = None

    def __get_pydantic_core_schema__(self, source: Any, _handler: GetCoreSchemaHandler) -> core_schema.CoreSchema:
        self._type = source
        return core_schema.no_info_plain_validator_function(self._validated)

    def __get_pydantic_json_schema__(
        self, _schema: core_schema.CoreSchema, handler: GetJsonSchemaHandler
    ) -> JsonSchemaValue:
        # A schema within another becomes a definition of its own, which a schema that is returned would not.
        return handler(core_schema.chain_schema([self._adapter.core_schema]))

    @cached_property
    def _adapter(self) -> TypeAdapter[Any]:
        return TypeAdapter(self._type)

    def _validated(self, value: Any) -> Any:
        """Return a section. The errors of pydantic become errors of the recipe, under the place of the section."""
        return self._adapter.validate_python(value)
