"""Which version of TensorRT loads an engine, and which image of Triton has the version."""

import pytest

from engine.runtimes.triton_images import read
from engine.server import image_tags
from engine.server.installation import Lacking
from engine.server.repository_needs import Engine


def test_the_image_is_the_one_whose_tensorrt_fits_the_engine():
    assert image_tags.tag_for([Engine("fast", "10.5.0.18")], None).tag == "24.10-py3"
    assert image_tags.tag_for([Engine("fast", "10.5.0.18", version_compatible=True)], "25.06").tag == "25.06-py3"
    assert image_tags.tag_for([], None) == image_tags.USUAL
    assert image_tags.tag_for([], "24.10").tag == "24.10-py3"


def test_a_mirror_is_pulled_from_where_it_is_and_judged_by_its_tag():
    mirror = "registry.example.com:5000/nvidia/tritonserver:24.10-py3"
    assert image_tags.tag_for([Engine("fast", "10.5.0.18")], mirror).address == mirror
    with pytest.raises(Lacking, match=r"the image 24.10-py3 has TensorRT 10.5"):
        image_tags.tag_for([Engine("fast", "10.11.0.33")], mirror)
    own = image_tags.tag_for([Engine("fast", "10.11.0.33")], "registry.example.com/own/triton:v2")
    assert own.address == "registry.example.com/own/triton:v2"
    assert "an unknown version" in image_tags.not_verified([Engine("fast", "10.11.0.33")], own)


@pytest.mark.parametrize(
    ("built", "image", "says"),
    [
        ("10.13.0.35", None, ["TensorRT 10.13.0.35 (fast)", "25.06-py3 has 10.11"]),
        ("10.13.0.35", "24.10", ["built by TensorRT 10.13.0.35", "the image 24.10-py3 has TensorRT 10.5"]),
        ("10.5.0.18", "24.10-vllm-python-py3", ["no backend for TensorRT engines"]),
        ("10.5.0.18", "latest", ["none of Triton's: 'latest'"]),
    ],
)
def test_an_engine_that_no_image_loads_is_refused_with_both_versions(built, image, says):
    with pytest.raises(Lacking) as error:
        image_tags.tag_for([Engine("fast", built)], image)
    assert all(each in str(error.value) for each in says)


def test_an_older_engine_is_loaded_by_a_later_minor_only_where_it_was_built_so():
    assert not image_tags.loads(Engine("fast", "10.5.0.18"), "10.11")
    assert image_tags.loads(Engine("fast", "10.5.0.18", version_compatible=True), "10.11")
    assert not image_tags.loads(Engine("fast", "10.13.0.35", version_compatible=True), "10.11")
    assert not image_tags.loads(Engine("fast", "8.6.1.6", version_compatible=True), "10.11")


def test_an_engine_without_four_numbers_is_not_verified_for_an_image():
    assert image_tags.not_verified([Engine("fast", "10.0.1.6")], read("24.05")) == ""
    assert image_tags.not_verified([], read("24.05")) == ""
    assert "TensorRT 10.0.1, an image of 10.0.1.6" in image_tags.not_verified([Engine("fast", "10.0.1")], read("24.05"))
    assert "an image of 10.11" in image_tags.not_verified([Engine("fast", "10.11.0.33")], read("25.06"))
    assert "an unknown version" in image_tags.not_verified([Engine("fast", "10.7.0.23")], read("25.01"))
    assert image_tags.not_verified([Engine("fast", "10.7.0.23", version_compatible=True)], read("25.06")) == ""
