"""Models are measured with as many threads as their package has, and a difference is said."""

import pytest

from engine.recipe.schema import BenchSection, ModelSection, PackageSection, Recipe
from engine.runtimes.threads import measured_threads, other_threads, packaged_threads


def recipe(bench=None, package=None, **triton):
    triton |= {} if package is None else {"threads": package}
    return Recipe(
        name="m", model=ModelSection(source="hf:a/b"), bench=BenchSection(threads=bench),
        package=PackageSection.model_validate({"triton": triton}),
    )  # fmt: skip


BY_FIELD = {"parameters": {"intra_op_thread_count": {"string_value": "3"}, "other": {"string_value": "5"}}}


@pytest.mark.parametrize(
    ("bench", "package", "fields", "measured", "packaged"),
    [
        (None, None, {}, None, None),
        (2, None, {}, 2, None),
        (None, 4, {}, 4, 4),
        (2, 4, {}, 2, 4),
        (None, None, BY_FIELD, 3, 3),
        (None, 4, BY_FIELD, 3, 3),
    ],
)
def test_bench_has_its_own_number_or_that_of_the_package(bench, package, fields, measured, packaged):
    one = recipe(bench, package, **fields)
    assert (measured_threads(one), packaged_threads(one)) == (measured, packaged)


def test_another_number_in_the_package_is_said():
    assert other_threads(recipe(2, 2), 2) == other_threads(recipe(None, 4), 4) == other_threads(recipe(), 8) == ""
    assert other_threads(recipe(2, 4), 2) == "measured with 2 threads; the package has 4: package.triton.threads"
    left = "measured with 1 thread; the package leaves their number to the runtime: package.triton.threads"
    assert other_threads(recipe(1), 1) == left
