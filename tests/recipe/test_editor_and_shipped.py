"""The JSON Schema for editors, and the recipes in `recipes/`."""

import functools
import json
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


@functools.cache
def validator():
    # Its import takes seconds, and each process of the tests collects this file.
    jsonschema = pytest.importorskip("jsonschema", reason="jsonschema is not installed: it comes with the extra `dev`")
    return jsonschema.Draft202012Validator(editor_schema())


def valid(text: str) -> bool:
    return validator().is_valid(yaml.safe_load(text))


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
