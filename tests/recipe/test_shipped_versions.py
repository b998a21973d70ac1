"""What pip brings for the shipped recipes is what they ask for, so that the engine is built and loads."""

import tomllib
from pathlib import Path

import yaml

from engine.runtimes import triton_images
from engine.text.versions import agrees

ROOT = Path(__file__).parents[2]


def pinned():
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    [version] = [each.removeprefix("tensorrt==") for each in extras["tensorrt"] if each.startswith("tensorrt==")]
    return version


def test_the_extra_tensorrt_installs_the_version_that_the_shipped_recipes_name():
    recipes = [yaml.safe_load(path.read_text()) for path in sorted((ROOT / "recipes").rglob("*.yaml"))]
    named = [each["tensorrt"]["version"] for each in recipes if each and "version" in (each.get("tensorrt") or {})]
    assert named
    assert {str(version) for version in named} == {pinned()}


def test_a_triton_image_loads_what_the_extra_tensorrt_builds():
    assert [image.tag for image in triton_images.IMAGES if agrees(pinned(), image.tensorrt)] == ["25.06-py3"]
