"""A field that is one of several names, which are looked up when it is read: packages may bring further ones."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pydantic import GetCoreSchemaHandler, GetJsonSchemaHandler
from pydantic_core import PydanticCustomError, core_schema

if TYPE_CHECKING:
    from pydantic.json_schema import JsonSchemaValue


@dataclass(frozen=True)
class OneOf:
    """Validates and complains as a Literal of the names would, had they been known when the class was made."""

    names: Callable[[], Sequence[str]]

    def __get_pydantic_core_schema__(self, _source: Any, _handler: GetCoreSchemaHandler) -> core_schema.CoreSchema:
        return core_schema.no_info_plain_validator_function(self._name)

    def __get_pydantic_json_schema__(
        self, _schema: core_schema.CoreSchema, _handler: GetJsonSchemaHandler
    ) -> JsonSchemaValue:
        return {"enum": list(self.names()), "type": "string"}

    def _name(self, value: Any) -> str:
        names = self.names()
        if not isinstance(value, str) or value not in names:
            expected = ", ".join(map(repr, names))
            raise PydanticCustomError("literal_error", "Input should be {expected}", {"expected": expected})
        return value
