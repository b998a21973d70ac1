"""Random files: reading a file returns a recipe or raises one error with a place."""

import os
import string

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from engine import feasibility
from engine.errors import RecipeError
from engine.recipe.load import load
from engine.recipe.matrix import written

FIELDS = (
    *("name", "model", "source", "target", "device", "runtime", "precision", "profiles", "batch", "sequence", "min"),
    *("opt", "max", "tensorrt", "validate", "cosine", "at_least", "bench", "shapes", "budget", "p95_ms", "package"),
    *("triton", "matrix", "include", "exclude", "extends", "steps", "graphs", "target.device", "profiles.0.batch"),
)
VALUES = st.one_of(
    st.sampled_from(["tiny", "model", "cpu", "T4", "fp16", "int8", "hf:a/b", "recipe.yaml", "${precision}", "1x16"]),
    st.integers(-5, 10**22),
    st.floats(),
    st.booleans(),
    st.none(),
    st.text(max_size=12),
)
DOCUMENTS = st.recursive(
    VALUES,
    lambda below: st.lists(below, max_size=4) | st.dictionaries(st.sampled_from(FIELDS), below, max_size=6),
    max_leaves=25,
)
PIECES = st.sampled_from(
    [*FIELDS, *"[]{}:,-?&*!|>%@`'\"#\n\t ", ": ", "- ", "\n  ", "&a ", "*a", "<<: ", "!!x ", "---\n", "...", "~", "\0"]
)
quick = settings(max_examples=150, suppress_health_check=[HealthCheck.function_scoped_fixture])


def read(project, data, **options):
    path = project.write(data)
    refused = None
    try:
        for loaded in load(path, **options):
            feasibility.check(loaded)
    except RecipeError as error:
        refused = error
    if refused is not None:
        assert refused.position.line >= 1
        assert refused.position.column >= 1
        assert "pydantic" not in str(refused)


@quick
@given(data=st.binary(max_size=400))
def test_any_bytes(project, data):
    read(project, data)


@quick
@given(text=st.text(max_size=400))
def test_any_text(project, text):
    read(project, text.encode("utf-8", "surrogatepass"))


@quick
@given(pieces=st.lists(PIECES, max_size=60))
def test_anything_that_looks_like_yaml(project, pieces):
    read(project, "name: tiny\nmodel: {source: model}\n" + "".join(pieces))


@quick
@given(document=st.dictionaries(st.sampled_from(FIELDS), DOCUMENTS, max_size=8))
def test_anything_that_looks_like_a_recipe(project, document):
    import yaml

    read(project, yaml.safe_dump({"name": "tiny", "model": {"source": "model"}} | document, allow_unicode=True))


@quick
@given(
    argument=st.text(alphabet=string.printable + "é\0\udc80", max_size=40)
    | st.builds(lambda path, value: f"{path}={written(value)}", st.sampled_from(FIELDS), DOCUMENTS)
)
def test_any_argument(project, argument):
    read(project, "name: tiny\nmodel: {source: model}\n", set=[argument])
    read(project, "name: tiny\nmodel: {source: model}\nmatrix: {precision: [fp32, int8]}\n", only=[argument])


def test_every_way_to_cut_a_recipe_short(project):
    text = (
        'name: tiny-${precision}\nmodel: {source: model}\nmatrix: {precision: [fp32, "int8"]}\n'
        "profiles:\n  - {batch: &a [1, 2, 3], sequence: *a}\nbench:\n  shapes: [{batch: 1, budget: {p95_ms: 1.5}}]\n"
    )
    assert os.sep not in text
    for end in range(len(text)):
        read(project, text[:end])
