"""The name of a task as a field: one of those that there are, looked up when it is read."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

from pydantic import GetCoreSchemaHandler, GetJsonSchemaHandler
from pydantic_core import PydanticCustomError, core_schema

from engine import tasks

if TYPE_CHECKING:
    from pydantic.json_schema import JsonSchemaValue


class _OneOfTheTasks:
    """Validates as a Literal of the tasks' names would, had it been known when the class was made."""

    @classmethod
    def __get_pydantic_core_schema__(cls, _source: Any, _handler: GetCoreSchemaHandler) -> core_schema.CoreSchema:
        return core_schema.no_info_plain_validator_function(_name)

    @classmethod
    def __get_pydantic_json_schema__(
        cls, _schema: core_schema.CoreSchema, _handler: GetJsonSchemaHandler
    ) -> JsonSchemaValue:
        return {"enum": list(tasks.names()), "type": "string"}


TaskName = Annotated[str, _OneOfTheTasks]


def _name(value: Any) -> str:
    names = tasks.names()
    if not isinstance(value, str) or value not in names:
        expected = ", ".join(map(repr, names))
        raise PydanticCustomError("literal_error", "Input should be {expected}", {"expected": expected})
    return value
