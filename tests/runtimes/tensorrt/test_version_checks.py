"""Each option of a recipe by the TensorRT version that brought it, against NVIDIA's own bindings."""

from typing import get_args

import pytest
import tensorrt_names

from engine.recipe.sections import TensorRTSection
from engine.recipe.values import Precision
from engine.runtimes import tensorrt_values
from engine.runtimes.tensorrt import version_checks
from engine.text import versions

OURS = {"version", "cuda_graph"}
"""Options that are no option of TensorRT's builder: the version itself, and how calls are run."""
AROUND = ("10.0.1", "10.7.0", "10.8.0.43", "10.9.0.34")
"""The versions on both sides of each step of the table."""

TYPES = {"fp32": "FLOAT", "fp16": "HALF", "bf16": "BF16", "int8": "INT8", "fp8": "FP8", "int4": "INT4"}
"""For each precision of a recipe its type in strongly typed networks, by TensorRT's name."""


def derived(by_version):
    """Return, for every name of the table, the minor version that brought it."""
    first = {row.api: tensorrt_names.first(row.api, by_version) for row in version_checks.TABLE}
    return {api: version and ".".join(versions.parts(version)[:2]) for api, version in first.items()}


def table():
    return {row.api: row.version for row in version_checks.TABLE}


def test_every_option_and_every_value_of_a_recipe_is_in_the_table():
    assert {row.at[0] for row in version_checks.TABLE} == set(TensorRTSection.__annotations__) - OURS
    for option, kind, left_out in [
        ("compatibility", tensorrt_values.Compatibility, {"none"}),
        ("tiling_optimization_level", tensorrt_values.TilingLevel, set()),
        ("profiling_verbosity", tensorrt_values.Verbosity, set()),
    ]:
        values = {row.value for row in version_checks.TABLE if row.at == (option,)} - {None}
        assert values == set(get_args(kind)) - left_out, option
    pools = {row.at[1] for row in version_checks.TABLE if len(row.at) > 1}
    assert pools == set(get_args(tensorrt_values.Pool))


@pytest.mark.slow
@pytest.mark.whole("needs the bindings of many versions; the table is read by the tests beside it")
def test_the_bindings_of_the_versions_around_each_step_give_the_same_table(tmp_path):
    assert derived({version: tensorrt_names.names(version, tmp_path) for version in AROUND}) == table()


@pytest.mark.slow
@pytest.mark.whole("the bindings are downloaded; the table is read by the tests beside it")
def test_the_types_of_every_precision_of_a_recipe_exist_since_tensorrt_10_0(tmp_path):
    assert set(get_args(Precision)) == set(TYPES)
    known = tensorrt_names.names(AROUND[0], tmp_path)
    assert {f"DataType.{name}" for name in TYPES.values()} <= known
    assert "DataType.FP4" not in known  # it came with 10.8, and no recipe has it


@pytest.mark.slow
@pytest.mark.whole
def test_the_bindings_of_all_versions_give_the_same_table_and_lose_no_name(tmp_path):
    by_version = {version: tensorrt_names.names(version, tmp_path) for version in tensorrt_names.VERSIONS}
    assert derived(by_version) == table()
    for row in version_checks.TABLE:
        having = [version for version, known in by_version.items() if row.api in known]
        assert having == list(by_version)[-len(having) :], row.api


@pytest.mark.parametrize(
    ("options", "version", "names"),
    [
        ({"tiling_optimization_level": "none"}, "10.7", ["tiling_optimization_level", "none"]),
        ({"tiling_optimization_level": "fast"}, "10.8", []),
        ({"compatibility": "same-compute-capability"}, "10.8.0.43", ["same-compute-capability"]),
        ({"compatibility": "same-compute-capability"}, "10.x", []),
        ({"compatibility": "ampere-plus", "refit": True, "memory_pool": {"workspace": 1}}, "10.0.1", []),
        ({"refit": False}, "9.3", []),
        ({"memory_pool": {"workspace": 1}}, "9.3", ["memory_pool", "memory_pool.workspace"]),
    ],
)
def test_an_option_is_lacking_before_the_version_that_brought_it(options, version, names):
    assert [row.option for row in version_checks.options_lacking(options, version)] == names
