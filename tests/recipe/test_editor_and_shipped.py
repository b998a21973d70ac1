"""The JSON Schema for editors, and the recipes in `recipes/`."""

import json
import re
from dataclasses import replace
from pathlib import Path

import pytest
import yaml

from engine import feasibility
from engine.feasibility.facts import ModelFacts
from engine.recipe.editor import editor_schema
from engine.recipe.load import load
from engine.recipe.model_config import MODEL_CONFIG
from engine.recipe.outline import fields_at
from engine.recipe.schema import Recipe

ROOT = Path(__file__).parents[2]
EVERYTHING = (Path(__file__).parent / "everything.yaml").read_text()
SHIPPED = sorted((ROOT / "recipes").glob("*.yaml"))
MINIMAL = "name: tiny\nmodel: {source: model}\n"

TYPES = {
    "object": dict,
    "array": list,
    "string": str,
    "number": int | float,
    "integer": int,
    "boolean": bool,
    "null": type(None),
}


def is_a(value, kind) -> bool:
    return isinstance(value, TYPES[kind]) and isinstance(value, bool) == (kind == "boolean")


def below(value, schema):
    """Yield each value of a mapping with each schema that the value has to fit."""
    for name, item in value.items():
        matching = [rule for pattern, rule in schema.get("patternProperties", {}).items() if re.search(pattern, name)]
        named = [schema["properties"][name]] if name in schema.get("properties", {}) else []
        yield from ((item, rule) for rule in named + matching or [schema.get("additionalProperties", True)])
        yield name, schema.get("propertyNames", True)


# The keywords of JSON Schema that the recipe's schema uses. An unknown keyword fails the test.
CHECKS = {
    "$ref": lambda value, ref, root, _: fits(value, root["$defs"][ref.rsplit("/", 1)[1]], root),
    "anyOf": lambda value, options, root, _: any(fits(value, option, root) for option in options),
    "oneOf": lambda value, options, root, _: sum(fits(value, option, root) for option in options) == 1,
    "const": lambda value, only, *_: value == only,
    "enum": lambda value, choices, *_: value in choices,
    "type": lambda value, kind, *_: is_a(value, kind),
    "items": lambda value, rule, root, _: not is_a(value, "array") or all(fits(item, rule, root) for item in value),
    "required": lambda value, names, *_: not is_a(value, "object") or all(name in value for name in names),
    "pattern": lambda value, pattern, *_: not is_a(value, "string") or bool(re.search(pattern, value)),
    "minimum": lambda value, bound, *_: not is_a(value, "number") or value >= bound,
    "maximum": lambda value, bound, *_: not is_a(value, "number") or value <= bound,
    "exclusiveMinimum": lambda value, bound, *_: not is_a(value, "number") or value > bound,
    **dict.fromkeys(
        ("properties", "patternProperties", "additionalProperties", "propertyNames"),
        lambda value, _, root, schema: (
            not is_a(value, "object") or all(fits(item, rule, root) for item, rule in below(value, schema))
        ),
    ),
    **{
        f"min{what}": lambda value, bound, *_, kind=kind: not is_a(value, kind) or len(value) >= bound
        for what, kind in (("Length", "string"), ("Items", "array"), ("Properties", "object"))
    },
    **{
        f"max{what}": lambda value, bound, *_, kind=kind: not is_a(value, kind) or len(value) <= bound
        for what, kind in (("Length", "string"), ("Items", "array"), ("Properties", "object"))
    },
    **dict.fromkeys(("$defs", "$schema", "title", "description", "default", "examples"), lambda *_: True),
}


def fits(value, schema, root) -> bool:
    if isinstance(schema, bool):
        return schema
    return all(CHECKS[keyword](value, rule, root, schema) for keyword, rule in schema.items())


def valid(text: str) -> bool:
    schema = editor_schema()
    return fits(yaml.safe_load(text), schema, schema)


@pytest.mark.parametrize("path", SHIPPED, ids=lambda path: path.stem)
def test_a_recipe_that_ships_fits_the_editors_schema(path):
    assert valid(path.read_text())


@pytest.mark.parametrize(
    "text",
    [
        EVERYTHING,
        MINIMAL,
        MINIMAL + "validate: {cosine: 0.9, max_abs: {at_most: 0.1}, metric: 0.9}",
        MINIMAL + "profiles: {batch: [1, 2, 3], sequence: {min: 1, opt: 2, max: 3}}",
        MINIMAL + "profiles: [{input_ids: [1x16, 1x128, 8x512]}, {input_ids: 1x16}]",
        "name: tiny-${precision}\nmodel: {source: m}\nmatrix: {precision: [fp16, int8], exclude: [{precision: int8}]}",
        "extends: base.yaml\n",
        "abstract: true\nprecision: fp16\n",
        "recipe: 1\n" + MINIMAL,
        MINIMAL + "tensorrt: {memory_pool: {workspace: 1048576}}",
        MINIMAL + "tensorrt: {compatibility: version-compatible, plugins: [libmine.so], timing_cache: t4.cache}",
        MINIMAL + "package: {triton: {input: [{name: x, data_type: TYPE_FP32, dims: [-1, '3']}], parameters: null}}",
        MINIMAL + "target: {device: [T4, L4]}\nmatrix: {target.device: [T4, [T4, L4]]}",
    ],
)
def test_what_loads_fits_the_editors_schema(text):
    assert valid(text)


@pytest.mark.parametrize(
    "text",
    [
        "name: tiny",
        "recipe: 2\n" + MINIMAL,
        MINIMAL + "precison: fp16",
        MINIMAL + "precision: fp61",
        MINIMAL + "profiles: [{batch: [1, 2]}]",
        MINIMAL + "profiles: [{batch: 0}]",
        MINIMAL + "bench: {shapes: [{batch: one}]}",
        MINIMAL + "bench: {shapes: [{batch: 1, budget: {p97_ms: 1}}]}",
        MINIMAL + "validate: {cosine: high}",
        MINIMAL + "matrix: {}",
        MINIMAL + "tensorrt: {versoin: x}",
        MINIMAL + "tensorrt: {compatibility: ampere}",
        MINIMAL + "tensorrt: {plugins: libmine.so}",
        MINIMAL + "target: {device: []}",
        MINIMAL + "package: {triton: {ensmble: x}}",
        MINIMAL + "package: {triton: {dynamic_batching: {max_queue_delay: 1}}}",
        MINIMAL + "package: {triton: {instance_group: [{kind: KIND_TPU}]}}",
        MINIMAL + "package: {triton: {models: {tokenzier: {}}}}",
        MINIMAL + "package: {triton: {models: {ensemble: {response_cache: true}}}}",
    ],
)
def test_what_is_wrong_does_not_fit_the_editors_schema(text):
    assert not valid(text)


def test_the_editors_schema_is_json_and_knows_every_field():
    schema = json.loads(json.dumps(editor_schema()))
    assert set(schema["properties"]) == {*(fields_at([]) or ()), "extends", "matrix", "recipe", "abstract"}
    assert "validate" in schema["properties"]
    twice = ["shape_values"]  # the values that `profiles` states
    assert len(Recipe.model_fields) - len(twice) == len(schema["properties"]) - 4


def test_tritons_field_names_are_those_of_its_protobuf():
    config = pytest.importorskip("tritonclient.grpc.model_config_pb2").ModelConfig
    assert {field.name for field in config.DESCRIPTOR.fields} == set(MODEL_CONFIG)


def test_a_recipe_for_each_promise_ships():
    on_gpus = {"minilm_t4", "minilm_t4_packaged", "minilm_gpus", "minilm_rtx", "minilm_cuda"}
    assert {path.stem for path in SHIPPED} >= {"minilm_cpu", *on_gpus}


def test_the_recipes_for_gpus_name_those_that_people_deploy_on():
    native, rtx, ort = (load(ROOT / "recipes" / f"minilm_{name}.yaml") for name in ("gpus", "rtx", "cuda"))
    assert {one.recipe.target.device for one in native} == {"T4", "L4", "A10", "A100", "H100"}
    devices = ("T4", "A10", "L4", "RTX 5090")
    assert {one.recipe.target.devices for one in rtx} == {*((name,) for name in devices), devices[1:]}
    assert {one.recipe.precision for one in (*native, *rtx)} == {"fp16", "int8"}
    assert {one.recipe.target.provider for one in ort} == {"cuda", "tensorrt"}
    assert all(one.recipe.calibrate is not None for one in (*native, *rtx, *ort))


@pytest.mark.parametrize("path", SHIPPED, ids=lambda path: path.stem)
def test_a_recipe_that_ships_can_be_built(path):
    facts = ModelFacts(kind="transformers", parameters=22_713_216, max_sequence=512, axes={"x": ("batch", "sequence")})
    image = replace(facts, kind="timm", max_sequence=None, axes={"pixel_values": ("batch", 3, 384, 384)})
    for loaded in load(path):
        feasibility.check(loaded)
        feasibility.check_model(loaded, image if loaded.recipe.model.source.startswith("timm:") else facts)


def test_the_t4_recipes_differ_only_in_the_model_and_names():
    (hub,), (packaged,) = (load(ROOT / "recipes" / f"{name}.yaml") for name in ("minilm_t4", "minilm_t4_packaged"))
    apart = {"name", "model", "package"}
    assert hub.recipe.model_dump(exclude=apart) == packaged.recipe.model_dump(exclude=apart)
    assert packaged.recipe.model.revision is None


def texts_of(name):
    lines = (ROOT / "recipes" / "samples" / f"{name}.jsonl").read_text(encoding="utf-8").splitlines()
    return [json.loads(line)["text"] for line in lines]


def test_nothing_is_calibrated_on_what_it_is_validated_on():
    assert set(texts_of("calibration")).isdisjoint(texts_of("sentences"))


@pytest.mark.parametrize("name", ["sentences", "calibration"])
def test_the_samples_that_ship_are_varied(name):
    texts = texts_of(name)
    assert len(set(texts)) == len(texts) >= 100
    assert sum(not text.isascii() for text in texts) >= 8
    assert max(len(text.split()) for text in texts) > 100
    assert min(len(text.split()) for text in texts) == 1
