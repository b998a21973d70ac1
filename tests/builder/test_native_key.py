"""The key of a TensorRT engine: its version, and rows that compatibility modes leave out.

test_rows_of_keys.py has all rows.
"""

import pytest

from engine.builder.job import Job
from engine.builder.lookup import Lookup
from engine.key import changes
from engine.machine import local_gpus, tools
from engine.machine.local_gpus import LocalGpu
from engine.recipe.schema import Recipe
from engine.steps.trt_build import TrtBuild
from engine.store.store import Store

OF_THE_DEVICE = (
    "device.name", "device.sm", "device.sm_count", "device.memory_bus_width", "device.l2_bytes",
    "device.shared_memory_per_block", "device.shared_memory_per_sm", "device.memory", "device.ecc", "device.mig",
    "device.integrated",
)  # fmt: skip


@pytest.fixture(autouse=True)
def _a_machine_with_a_t4(monkeypatch):
    monkeypatch.setattr(local_gpus, "gpus", lambda: (LocalGpu("Tesla T4", 75, "550.54"),))
    monkeypatch.setitem(tools._versions, "tensorrt", "10.13.0.35")


@pytest.fixture
def key(tmp_path):
    """Return the key of the engine of a recipe for a T4."""

    def of(**tensorrt):
        recipe = Recipe.model_validate({
            "name": "m", "model": {"source": "m"}, "target": {"device": "T4", "runtime": "tensorrt"},
            "precision": "fp16", "profiles": [{"batch": [1, 2, 4]}], "tensorrt": tensorrt,
        })  # fmt: skip
        job = Job("m", "trt-build", TrtBuild.for_recipe(recipe), {"prepared": "trt-prepare"})
        return Lookup(Store(tmp_path / "cache")).key(job, {"prepared": "a graph"})

    return of


@pytest.fixture
def become(monkeypatch):
    """Give one fact of the GPU another value."""
    return lambda name: monkeypatch.setitem(local_gpus._FACTS, name, lambda _: "another")


def rows(before, after):
    return [change.row for change in changes(before, after)]


def test_the_four_part_version_of_tensorrt_is_a_row(key, monkeypatch):
    before = key()
    monkeypatch.setitem(tools._versions, "tensorrt", "10.13.0.36")
    assert rows(before, key()) == ["tools.tensorrt"]


@pytest.mark.parametrize(
    ("mode", "counts"), [("same-compute-capability", "device.sm"), ("ampere-plus", "device.ampere_plus")]
)
def test_a_compatibility_mode_keeps_one_row_of_the_device(key, become, mode, counts):
    before = key(compatibility=mode)
    for name in OF_THE_DEVICE:
        if name != counts:
            become(name)
    assert rows(before, key(compatibility=mode)) == []
    become(counts)
    assert rows(before, key(compatibility=mode)) == [f"facts.{counts}"]


def test_of_a_version_compatible_engine_only_the_major_of_tensorrt_counts(key, monkeypatch):
    before = key(version_compatible=True)
    monkeypatch.setitem(tools._versions, "tensorrt", "10.14.1.48")
    assert rows(before, key(version_compatible=True)) == []
    monkeypatch.setitem(tools._versions, "tensorrt", "11.4.0.1")
    assert rows(before, key(version_compatible=True)) == ["facts.tensorrt.major"]


def test_the_recipes_word_for_the_version_is_no_row_where_the_version_is(key):
    assert rows(key(), key(version="10.x")) == []
