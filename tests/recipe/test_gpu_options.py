"""The options of a recipe for GPUs: several devices, files that TensorRT reads, levels of compatibility."""

import pytest

MINIMAL = "name: tiny\nmodel: {source: model}\n"


@pytest.fixture
def files(project):
    (project.root / "libs").mkdir()
    for name in ("libmine.so", "libother.so.2", "t4.cache"):
        (project.root / "libs" / name).write_bytes(b"\x7fELF")
    return project


def test_plugins_and_a_timing_cache_are_files_that_the_recipe_names(files):
    text = MINIMAL + "tensorrt: {plugins: [libs/libmine.so, libs/libother.so.2], timing_cache: libs/t4.cache}"
    loaded = files.one(text)
    options = loaded.recipe.tensorrt
    assert options["plugins"] == tuple(f"file:{files.root}/libs/{name}" for name in ("libmine.so", "libother.so.2"))
    assert options["timing_cache"] == f"file:{files.root}/libs/t4.cache"
    assert [loaded.portable_name(uri) for uri in options["plugins"]] == ["libs/libmine.so", "libs/libother.so.2"]
    assert f"{files.root}/libs/libmine.so" in loaded.way


def test_a_parents_plugins_belong_to_the_parent(files):
    files.write(MINIMAL + "tensorrt: {plugins: [libmine.so]}\n", "libs/base.yaml")
    (files.root / "libs" / "model").mkdir()
    loaded = files.one("extends: libs/base.yaml\nname: child\n")
    assert loaded.recipe.tensorrt["plugins"] == (f"file:{files.root}/libs/libmine.so",)


@pytest.mark.parametrize(
    ("option", "what"),
    [
        ("plugins: [libs/libmine.so, libs/libmine.so]", "says the same twice"),
        ("plugins: [libs]", "which is no library"),
        ("plugins: [libs/t4.cache]", "which is no library"),
        ("plugins: ['hf:a/b']", "cannot be read from hf:"),
        ("plugins: ['../lib.so']", "leads out of the project"),
        ("timing_cache: libs", "which is no file"),
        ("timing_cache: libs/t5.cache", "which is not there"),
    ],
)
def test_what_they_cannot_name(files, option, what):
    assert what in files.error(MINIMAL + f"tensorrt: {{{option}}}").what


def test_version_compatible_is_a_flag_by_either_name(project):
    by_level = project.one(MINIMAL + "tensorrt: {compatibility: version-compatible, refit: true}").recipe
    by_flag = project.one(MINIMAL + "tensorrt: {version_compatible: true, refit: true}").recipe
    assert by_level.tensorrt == by_flag.tensorrt == {"version_compatible": True, "refit": True}
    both = project.one(MINIMAL + "tensorrt: {compatibility: ampere-plus, version_compatible: true}").recipe
    assert both.tensorrt == {"compatibility": "ampere-plus", "version_compatible": True}
    error = project.error(MINIMAL + "tensorrt: {compatibility: version-compatible, version_compatible: false}")
    assert "that it is version-compatible and that it is not" in error.what


def test_one_device_or_several(project):
    one = project.one(MINIMAL + "target: {device: T4}").recipe.target
    several = project.one(MINIMAL + "target: {device: [T4, L4]}").recipe.target
    assert (one.devices, several.devices) == (("T4",), ("T4", "L4"))
    assert "says the same twice" in project.error(MINIMAL + "target: {device: [T4, T4]}").what


def test_a_matrix_may_vary_between_one_device_and_several(project):
    text = MINIMAL.replace("tiny", "tiny-${target.device}") + "matrix: {target.device: [T4, [T4, RTX 5090]]}"
    loaded = project.load(text)
    assert [one.recipe.name for one in loaded] == ["tiny-T4", "tiny-T4-RTX-5090"]
    assert [one.recipe.target.devices for one in loaded] == [("T4",), ("T4", "RTX 5090")]
    assert loaded[1].variant == "target.device=[T4, RTX 5090]"
    (chosen,) = project.load(text, only=["target.device=[T4, RTX 5090]"])
    assert chosen.recipe.name == "tiny-T4-RTX-5090"
