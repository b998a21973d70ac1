"""Models of timm: the weights as timm loads them, images in either layout, and clear words where it cannot be."""

from __future__ import annotations

import sys

import heads
import numpy as np
import pytest
import timm_here

from engine.errors import StepError
from engine.kit.reference import timm_models, torch_models
from engine.recipe.image_input import Images

TASK = "image-classification"


@pytest.fixture(scope="module")
def efficientnet(timm, tmp_path_factory):
    """Convolutions with TensorFlow's padding, ten classes."""
    return timm_here.checkpoint(tmp_path_factory.mktemp("b0"), "tf_efficientnetv2_b0", size=64, num_classes=10)


@pytest.fixture(scope="module")
def transformer(timm, tmp_path_factory):
    """A vision transformer made for 160 x 160 pixels."""
    return timm_here.checkpoint(tmp_path_factory.mktemp("vit"), "test_vit", size=160)


def refusal(*arguments, **options):
    with pytest.raises(StepError) as caught:
        timm_models.load(*arguments, **options)
    return str(caught.value)


@pytest.mark.parametrize("layout", ["NCHW", "NHWC"])
def test_it_answers_as_the_model_that_timm_itself_loads(timm, efficientnet, layout):
    import torch

    theirs = timm.create_model(f"local-dir:{efficientnet}", pretrained=True).eval()
    module = timm_models.load(efficientnet, TASK, Images(layout=layout, size=(64, 64)))
    images = np.random.default_rng(5).standard_normal((3, 3, 64, 64), dtype="float32")
    with torch.inference_mode():
        expected = theirs(torch.from_numpy(images)).numpy()
    given = images if layout == "NCHW" else np.ascontiguousarray(images.transpose(0, 2, 3, 1))
    [(name, logits)] = torch_models.call(module, {"images": given}).items()
    assert name == "logits"
    assert logits.shape == (3, 10)
    # Channels that come last are summed in another order.
    assert np.abs(logits - expected).max() < 1e-4 * np.abs(expected).max()
    assert 0.01 < expected.std() < 100  # numbers that are all alike, or enormous, would prove nothing


def test_the_size_is_the_models_own_where_the_recipe_says_none(efficientnet):
    assert timm_models.load(efficientnet, TASK, Images()).input_specs["images"].shape == ("batch", 3, 192, 192)
    last = timm_models.load(efficientnet, TASK, Images(layout="NHWC", size=(96, 96)))
    assert last.input_specs["images"].shape == ("batch", 96, 96, 3)
    assert last.input_specs["images"].dtype == "float32"


def test_weights_of_a_transformer_are_resampled_to_another_size(transformer):
    module = timm_models.load(transformer, TASK, Images(size=(96, 96)))
    assert torch_models.call(module, timm_models.example(module, 2))["logits"].shape == (2, 1000)


@pytest.mark.parametrize(
    ("settings", "arguments", "why"),
    [
        (
            {},
            (TASK, Images(size=(7, 7))),
            "the checkpoint's weights do not make a test_vit for images of the size [7, 7]\n",
        ),
        ({"architecture": "test_resnet"}, (TASK, Images()), "the checkpoint's weights do not make a test_resnet\n"),
        ({"architecture": "efficientnetv9"}, (TASK, Images()), "has no architecture 'efficientnetv9'"),
        ({}, ("feature-extraction", Images()), "the task feature-extraction is not supported"),
    ],
    ids=["a size", "other weights", "an unknown architecture", "another task"],
)
def test_what_the_model_cannot_be_is_refused(transformer, tmp_path, settings, arguments, why):
    checkpoint = heads.copied(transformer, tmp_path)
    heads.edit(checkpoint / "config.json", **settings)
    error = refusal(checkpoint, *arguments)
    assert why in error
    assert str(tmp_path) not in error


def test_an_image_too_small_for_its_layers_is_refused_with_the_models_own_size(timm, tmp_path):
    small = timm_here.checkpoint(tmp_path / "small", "test_convnext", size=160)
    error = refusal(small, TASK, Images(size=(8, 8)))
    assert error.startswith("test_convnext cannot take images of this size: batch x 3 x 8 x 8\n")
    assert "its own size is 160 x 160" in error


@pytest.mark.parametrize("size", [64, 65])
def test_fixed_padding_changes_no_number(efficientnet, size):
    from timm.layers import Conv2dSame

    module = timm_models.load(efficientnet, TASK, Images(size=(size, size)))
    fixed = timm_models.with_constant_padding(module)
    images = timm_models.example(module, 3)
    expected, answers = (torch_models.call(each, images)["logits"] for each in (module, fixed))
    assert np.abs(answers - expected).max() < 1e-6
    same = [sum(type(each) is Conv2dSame for each in model.modules()) for model in (module, fixed)]
    assert same[0] > 0
    assert same[1] == 0


def test_a_head_of_other_classes_is_only_made_up_where_the_recipe_says_so(efficientnet):
    error = refusal(efficientnet, TASK, Images(size=(64, 64)), num_labels=4)
    assert error.startswith("the checkpoint's head has 10 classes, but the recipe asks for 4\n")
    modules = [
        timm_models.load(efficientnet, TASK, Images(size=(64, 64)), num_labels=4, random_head=True) for _ in range(2)
    ]
    images = timm_models.example(modules[0], 1)
    first, second = (torch_models.call(module, images)["logits"] for module in modules)
    assert first.shape == (1, 4)
    assert np.array_equal(first, second)


def test_a_model_without_a_head_is_refused(timm, tmp_path):
    bare = timm_here.checkpoint(tmp_path / "bare", "test_resnet", size=64, num_classes=0)
    assert refusal(bare, TASK, Images(size=(64, 64))).startswith("the checkpoint has no head that classifies")


def test_without_timm_it_says_how_to_install_it(efficientnet, monkeypatch):
    monkeypatch.setitem(sys.modules, "timm", None)
    error = refusal(efficientnet, TASK, Images())
    assert error.startswith("a model of timm needs timm and torchvision\n")
    assert "pip install 'recipe-build[timm]'" in error


def test_a_torchvision_for_another_torch_is_told_from_a_missing_one(efficientnet, tmp_path, monkeypatch):
    (tmp_path / "timm.py").write_text("raise RuntimeError('operator torchvision::nms does not exist')")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "timm")
    error = refusal(efficientnet, TASK, Images())
    assert error.startswith("timm cannot be imported: torchvision does not fit the installed torch\n")
    assert "operator torchvision::nms does not exist" in error
