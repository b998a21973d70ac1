"""`recipe new` on image models of transformers: the new recipe builds as it is, with drawn pictures as samples."""

import re

import pytest
import yaml

from tests.support import image_models
from tests.support.program import Program

IN_CI = ("vit/image-classification",)
"""The models that every run builds; `--whole` builds all."""
OTHERS = (
    "clip/zero-shot-image-classification", "convnext/image-classification", "detr/object-detection",
    "dinov2/image-feature-extraction", "resnet/image-classification", "segformer/image-segmentation",
    "siglip/zero-shot-image-classification", "yolos/object-detection",
)  # fmt: skip


@pytest.mark.parametrize("name", [*IN_CI, *(pytest.param(name, marks=pytest.mark.whole) for name in OTHERS)])
def test_a_new_recipe_of_an_image_model_is_built_as_it_is(tmp_path, name):
    program = Program(tmp_path)
    image_models.write(name, tmp_path / "model")
    done = program("new", "model", "--task", image_models.task_of(name), "-o", "it.yaml", expect=0)
    assert len(re.findall(r"wrote samples/it/\d\.png", done.stdout)) == 8
    recipe = yaml.safe_load((tmp_path / "it.yaml").read_text())
    assert recipe["profiles"][0]["batch"] == [1, 1, 8]
    program("build", "it.yaml", "--set", "bench=null", expect=0)
    assert (tmp_path / "build" / "it" / recipe["package"]["triton"]["ensemble"] / "config.pbtxt").is_file()
