"""A mistake of a unit in a recipe is refused at its place, with the value that is meant."""

import pytest
from wrong_values import GPU, MINIMAL

from engine import feasibility
from engine.errors import RecipeError
from engine.recipe.load import load

BUDGET = MINIMAL + "bench: {shapes: [{batch: 1, budget: {p95_ms: V}}]}"
WORKSPACE = GPU + "tensorrt: {memory_pool: {workspace: V}}"
DELAY = MINIMAL + "package: {triton: {dynamic_batching: {max_queue_delay_microseconds: V}}}"
COSINE = MINIMAL + "validate: {cosine: V}"

CASES = [
    (WORKSPACE, "2", "a size without a unit", "write 2GiB or 2MiB"),
    (WORKSPACE, "4096", "a size without a unit", "write 4096MiB"),
    (WORKSPACE, "'2'", "a size without a unit", "write 2GiB"),
    (WORKSPACE, "2.5", "a size without a unit", "write 2.5GiB"),
    (WORKSPACE, "2G", "a size is meant", "write 2GB or 2GiB"),
    (WORKSPACE, "2 parsecs", "a size is meant", "2GiB"),
    (BUDGET, "5ms", "a number is meant", "write 5, the number of milliseconds"),
    (BUDGET, '"5ms"', "a number is meant", "write 5,"),
    (BUDGET, "0.5s", "a number is meant", "write 500,"),
    (BUDGET, "-5", "more than 0 is meant", ""),
    (BUDGET, ".nan", "is meant", ""),
    (COSINE, "1.5", "a number from -1 to 1 is meant", ""),
    (COSINE, "99", "a number from -1 to 1 is meant", "write 0.99"),
    (COSINE, "95%", "a number or", "write 0.95"),
    (COSINE, "'0.95'", "a number or", "write 0.95"),
    (COSINE, "-2", "a number from -1 to 1 is meant", ""),
    (COSINE, ".nan", "a finite number is meant", ""),
    (MINIMAL + "validate: {cosine: {at_least: V}}", "99.9%", "a number is meant", "write 0.999"),
    (MINIMAL + "validate: {agreement: V}", "99", "a number from 0 to 1 is meant", "write 0.99"),
    (MINIMAL + "validate: {agreement: V}", "-0.5", "a number from 0 to 1 is meant", ""),
    (MINIMAL + "validate: {agreement: {at_most: V}}", "100", "a number from 0 to 1 is meant", "write 1"),
    (MINIMAL + "validate: {metric: V}", "88%", "a number or", "write 0.88"),
    (MINIMAL + "validate: {metric: {at_least: V}}", "1.01", "a number from 0 to 1 is meant", ""),
    (MINIMAL + "validate: {max_abs: V}", "-0.1", "a number from 0 to", ""),
    (MINIMAL + "validate: {max_abs: V}", "1%", "a number or", "write 0.01"),
    (MINIMAL + "profiles: [{sequence: V}]", "128 tokens", "a size, ", "write 128"),
    (MINIMAL + "profiles: [{batch: [1, V, 8]}]", "4x", "a whole number is meant", "write 4"),
    (MINIMAL + "bench: {shapes: [{batch: V}]}", "1e3", "a whole number is meant", "write 1000"),
    (MINIMAL + "bench: {threads: V}", "8 threads", "a whole number is meant", "write 8"),
    (MINIMAL + "calibrate: {samples: samples/few.jsonl, limit: V}", "1k", "a whole number is meant", "write 1000"),
    (MINIMAL + "preprocess: {size: V}", "224px", "a whole number is meant", "write 224"),
    (MINIMAL + "generate: {max_new_tokens: V}", "32 tokens", "a whole number is meant", "write 32"),
    (DELAY, "5ms", "a whole number is meant", "write 5000, the number of microseconds"),
    (DELAY, "0.1 ms", "a whole number is meant", "write 100,"),
    (MINIMAL + "bench: {threads: V}", "1.5", "a whole number is meant", ""),
    (DELAY, "1.5", "a whole number is meant", ""),
]


def check(path):
    for loaded in load(path):
        feasibility.check(loaded)


@pytest.mark.parametrize(
    ("recipe", "value", "what", "hint"), CASES, ids=[f"{text[32:]}={value}" for text, value, *_ in CASES]
)
def test_a_mistake_of_a_unit_is_refused_with_the_mend(project, recipe, value, what, hint):
    text = recipe.replace("V", value)
    path = project.write(text)
    with pytest.raises(RecipeError) as caught:
        check(path)
    error = caught.value
    assert what in error.what
    assert (hint in error.hint) if hint else error.hint == ""
    line, column = error.position.line, error.position.column
    assert text.split("\n")[line - 1][column - 1 :].startswith((value, "[", "{"))


@pytest.mark.parametrize("value", ["2GiB", "'2 gb'", "512MiB", "1.5GB", "2147483648"])
def test_a_size_with_its_unit_or_a_large_number_of_bytes_is_right(project, value):
    project.one(WORKSPACE.replace("V", value))


def test_a_bound_at_the_end_of_its_range_is_right(project):
    project.one(MINIMAL + "validate: {cosine: {at_least: -1, at_most: 1}, agreement: 1, metric: {at_most: 0}}")


def test_a_units_mistake_on_the_command_line_has_its_place(project):
    with pytest.raises(RecipeError) as caught:
        load(project.write(COSINE.replace("V", "0.9")), set=["validate.cosine=95%"])
    assert caught.value.position.file == "--set"
    assert caught.value.hint == "write 0.95"
