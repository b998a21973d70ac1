"""The schema for editors: every field has a description, and every example is a right value."""

import pytest

from engine.recipe import descriptions, editor

SCHEMA = editor.editor_schema()


def described(schema, path=()):
    """Yield the path and the schema of every field below a schema; conditions such as `required` have none."""
    for name, field in schema.get("properties", {}).items():
        yield (*path, name), field
        yield from described(field, (*path, name))
    below = [schema[key] for key in ("items", "additionalProperties") if isinstance(schema.get(key), dict)]
    below += [each for key in ("anyOf", "oneOf", "allOf") for each in schema.get(key, ()) if path]
    for each in below:
        yield from described(each, path)


def every():
    yield from described(SCHEMA)
    for name, definition in SCHEMA["$defs"].items():
        for section in (definition, *definition.get("anyOf", ())):
            yield from described(section, (name,))


def test_every_field_has_a_description():
    fields = list(every())
    assert len(fields) > 250
    assert [".".join(path) for path, field in fields if not field.get("description")] == []


def examples():
    for name, fields in descriptions.FIELDS.items():
        for field, about in fields.items():
            for example in about.examples:
                yield pytest.param(name, field, example, id=f"{name}.{field}={example}")


@pytest.mark.parametrize(("name", "field", "example"), list(examples()))
def test_an_example_is_a_right_value(name, field, example):
    # Its import takes seconds, and each process of the tests collects this file.
    jsonschema = pytest.importorskip("jsonschema", reason="jsonschema is not installed: it comes with the extra `dev`")
    place = {"": SCHEMA, "matrix": SCHEMA["properties"]["matrix"], **SCHEMA["$defs"]}[name]
    sections = [each for each in (place, *place.get("anyOf", ())) if "properties" in each]
    rule = {**sections[0]["properties"][field], "$defs": SCHEMA["$defs"]}
    jsonschema.Draft202012Validator(rule).validate(example)


def test_fields_with_a_default_show_it():
    with_default = [path for path, field in every() if "default" in field]
    assert len(with_default) > 30
