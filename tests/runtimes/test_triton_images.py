"""The TensorRT of an image of Triton, which must be the TensorRT of the recipe."""

from contextlib import nullcontext

import pytest

from engine import feasibility
from engine.errors import RecipeError
from engine.recipe.load import load
from engine.runtimes import requirements, triton_images
from engine.text import versions

DIGEST = "@sha256:" + "0123456789abcdef" * 4


@pytest.fixture
def recipe(tmp_path):
    def loaded(image, tensorrt="", runtime="tensorrt"):
        path = tmp_path / "r.yaml"
        target = f"target: {{device: T4, runtime: {runtime}}}"
        package = f"package: {{triton: {{image: '{image}'}}}}"
        path.write_text(f"name: tiny\nmodel: {{source: 'hf:a/b'}}\n{target}\n{package}\ntensorrt: {{{tensorrt}}}\n")
        (one,) = load(path)
        return one

    return loaded


def test_an_image_is_named_by_its_release_its_tag_or_in_full():
    for name in ("24.05", "24.05-py3", "nvcr.io/nvidia/tritonserver:24.05-py3"):
        tag = triton_images.read(name)
        assert (tag.tag, tag.image.tensorrt) == ("24.05-py3", "10.0.1.6")
    digest = f"24.05-py3{DIGEST}"
    assert triton_images.read(digest).address == f"{triton_images.REPOSITORY}:{digest}", "pulled from NVIDIA"


# Source of the grammar: reference.go of distribution/reference, which docker uses for names of images.
MIRRORS = [
    "registry.example.com/nvidia/tritonserver:24.05-py3",
    "registry.example.com:5000/nvidia/tritonserver:24.05-py3",
    "localhost:5000/tritonserver:24.05",
    "nvcr.io:443/nvidia/tritonserver:24.05-py3",
    f"nvcr.io/nvidia/tritonserver:24.05-py3{DIGEST}",
    f"registry.example.com/mirror/nvcr.io/nvidia/tritonserver:24.05-py3{DIGEST}",
    "own/triton-with-tokenizers:24.05-py3",
]
UNKNOWN = [
    "registry.example.com/nvidia/tritonserver",
    "registry.example.com/nvidia/tritonserver:latest",
    "registry.example.com/own/serving:1.2.3",
    "ubuntu:24.04",  # no release of Triton, though it reads like one
    f"nvcr.io/nvidia/tritonserver{DIGEST}",
    "nvcr.io/nvidia/tritonserver-pb24h1:24.03.07-py3",
]


@pytest.mark.parametrize("name", MIRRORS)
def test_a_mirror_is_judged_by_its_tag(recipe, name):
    tag = triton_images.read(name)
    assert (tag.tag, tag.image.tensorrt, tag.address) == ("24.05-py3", "10.0.1.6", name)
    feasibility.check(recipe(name, "version: '10.0.1'"))
    with pytest.raises(RecipeError, match=r"builds the engine, and the image 24.05-py3 loads those of 10.0.1.6"):
        feasibility.check(recipe(name, "version: '10.4'"))


@pytest.mark.parametrize("name", UNKNOWN)
def test_nothing_is_known_about_an_image_with_another_tag(recipe, name):
    """It is not refused, and the recipe says the TensorRT of the image, as for a release that no table has."""
    assert triton_images.read(name).image is None
    versioned = recipe(name, "version: '10.7.0.23'")
    feasibility.check(versioned)
    unknown = triton_images.not_verified(versioned.recipe)
    assert f"nothing is known about the TensorRT of the image {name}" in unknown
    with pytest.raises(RecipeError, match="is not known here") as error:
        feasibility.check(recipe(name))
    assert f"docker run --rm {name} dpkg-query" in error.value.hint


def test_an_unknown_image_is_refused_for_no_board_and_no_field_of_triton(tmp_path):
    text = """name: tiny
model: {source: 'hf:a/b'}
target: {device: Jetson AGX Orin, runtime: tensorrt}
tensorrt: {version: '10.3'}
package: {triton: {image: 'registry.example.com/own/serving:r36', model_metrics: {}}}
"""
    path = tmp_path / "r.yaml"
    for image, refuses in (("registry.example.com/own/serving:r36", ""), ("24.10-py3-igpu", "has no `model_metrics`"),
                           ("24.10-py3", "is for servers")):  # fmt: skip
        path.write_text(text.replace("registry.example.com/own/serving:r36", image))
        (one,) = load(path)
        with pytest.raises(RecipeError, match=refuses) if refuses else nullcontext():
            feasibility.check(one)


@pytest.mark.parametrize(
    "name",
    ["latest", "24", "24.5", "27.13", "24.00-py3", "nvcr.io/nvidia/tensorrt:24.05-py3", "", "https://nvcr.io/a:24.05",
     "registry.example.com/nvidia/tensorrt:24.05-py3", "nvcr.io/nvidia/tritonserver:latest", "24.05-py3@sha256:12"],
)  # fmt: skip
def test_anything_else_is_no_image(name):
    assert triton_images.read(name) is None


@pytest.mark.parametrize(
    ("requested", "agrees"),
    [("10.x", True), ("10", True), ("10.0", True), ("10.0.1.6", True), ("10.0.1", True), ("10.1", False)],
)
def test_a_version_agrees_as_far_as_it_is_said(recipe, requested, agrees):
    assert versions.agrees(requested, "10.0.1.6") is agrees
    refusal = f"TensorRT {requested} builds the engine, and the image 24.05-py3 loads"
    with nullcontext() if agrees else pytest.raises(RecipeError, match=refusal):
        feasibility.check(recipe("24.05", f"version: '{requested}'"))


def test_a_version_compatible_engine_may_be_older_than_its_server(recipe):
    feasibility.check(recipe("24.05", "version: '10.0.0', version_compatible: true"))
    with pytest.raises(RecipeError, match=r"those of 10.0.1.6"):
        feasibility.check(recipe("24.05", "version: '10.1', version_compatible: true"))


def test_of_an_image_that_is_not_known_the_recipe_says_the_version(recipe):
    with pytest.raises(RecipeError, match="is not known here"):
        feasibility.check(recipe("25.01", "version: '10.x'"))
    feasibility.check(recipe("25.01", "version: '10.9'"))
    feasibility.check(recipe("25.01", "version: '10.x', version_compatible: true"))


def test_the_image_gives_the_version_that_the_recipe_does_not_say(recipe):
    assert triton_images.tensorrt_for(recipe("24.05").recipe) == "10.0.1.6"
    assert requirements.required(recipe("24.05").recipe).version == "10.0.1.6"
    assert triton_images.tensorrt_for(recipe("24.05", "version: '10.x'").recipe) == "10.0.1.6"
    free = "version: '10.x', version_compatible: true"
    assert triton_images.tensorrt_for(recipe("24.05", free).recipe) == "10.0.1.6"  # not a later one
    assert triton_images.tensorrt_for(recipe("25.03", free).recipe) == "10.9"
    earlier = "version: '10.4', version_compatible: true"
    assert triton_images.tensorrt_for(recipe("25.03", earlier).recipe) == "10.4"
    assert triton_images.tensorrt_for(recipe("25.01").recipe) is None


def test_every_row_says_where_it_is_from():
    assert len({image.tag for image in triton_images.IMAGES}) == len(triton_images.IMAGES)
    used = {tag for image in triton_images.IMAGES for tag in image.sources}
    assert used <= triton_images.SOURCES.keys()
    assert triton_images.SOURCES.keys() - used == {"backends-401"}  # about images that load no engines
    assert not any(triton_images.read(f"24.05-{flavour}").loads_engines for flavour in ("trtllm-python-py3", "py3-sdk"))


@pytest.mark.parametrize(
    ("image", "tensorrt", "says"),
    [
        ("24.05", "", None),  # the image says all four numbers
        ("24.05", "version: '10.x'", None),
        ("24.05", "version: '10.0.1'", None),
        ("25.06", "version: '10.11.0.33'", "TensorRT 10.11.0.33 builds the engine, and the image 25.06-py3 is only"),
        ("25.06", "", "TensorRT 10.11 builds the engine"),
        ("25.01", "version: '10.7.0.23'", "nothing is known about the TensorRT of the image 25.01-py3"),
        ("24.10", "version: '10.4', version_compatible: true", None),
        ("25.01", "version: '10.x', version_compatible: true", "nothing is known about the TensorRT"),
    ],
)
def test_a_pair_that_four_numbers_do_not_prove_is_not_verified(recipe, image, tensorrt, says):
    unknown = triton_images.not_verified(recipe(image, tensorrt).recipe)
    assert unknown is None if says is None else says in unknown
