"""Image inputs: sizes, masks and texts that a graph takes, by the files of a checkpoint alone."""

import json

import pytest

from engine.errors import StepError
from engine.kit.reference import image_inputs
from engine.recipe.image_input import Images

IMAGES = Images()


def folder(tmp_path, config, processor=None):
    (tmp_path / "config.json").write_text(json.dumps(config))
    if processor is not None:
        (tmp_path / "preprocessor_config.json").write_text(json.dumps(processor))
    return tmp_path


@pytest.mark.parametrize(
    ("config", "processor", "size"),
    [
        ({"model_type": "vit", "image_size": 384}, {"size": {"height": 224, "width": 200}}, (224, 200)),
        ({"model_type": "vit", "image_size": 384}, {"size": 224}, (224, 224)),
        ({"model_type": "vit", "image_size": 384}, None, ("height", "width")),
        ({"model_type": "swin", "image_size": 384}, None, (384, 384)),
        ({"model_type": "swin", "image_size": [384, 256]}, {"size": {"shortest_edge": 256}}, (384, 256)),
        ({"model_type": "resnet"}, {"size": {"shortest_edge": 224}, "crop_pct": 0.875}, (224, 224)),
        (
            {"model_type": "clip", "vision_config": {"image_size": 336}},
            {"size": {"shortest_edge": 224}, "do_center_crop": True, "crop_size": {"height": 224, "width": 224}},
            (224, 224),
        ),
        (
            {"model_type": "dpt", "image_size": 64},
            {"size": {"height": 384, "width": 384}, "keep_aspect_ratio": True},
            (64, 64),
        ),
        ({"model_type": "detr"}, {"size": {"shortest_edge": 800, "longest_edge": 1333}}, ("height", "width")),
        ({"model_type": "rt_detr"}, {"size": {"height": 640, "width": 640}}, (640, 640)),
    ],
)  # fmt: skip
def test_the_size_is_the_one_of_the_processor_else_free_or_the_models_own(tmp_path, config, processor, size):
    directory = folder(tmp_path, config, processor)
    specs = image_inputs.specs(directory, "object-detection", IMAGES)
    assert specs["pixel_values"].shape == ("batch", 3, *size)
    assert ("pixel_mask" in specs) == (config["model_type"] == "detr")
    chosen = image_inputs.specs(directory, "object-detection", IMAGES.model_copy(update={"size": (64, 96)}))
    assert chosen["pixel_values"].shape == ("batch", 3, 64, 96)


@pytest.mark.parametrize(
    ("config", "what"),
    [
        ({"model_type": "upernet"}, "upernet takes images of one size, and nothing says which"),
        ({"model_type": "sam"}, "sam takes points or boxes beside an image: it cannot be built for image-segmentation"),
        ({"model_type": "bert", "architectures": ["BertModel"]},
         "BertModel takes no images: it cannot be built for image-segmentation"),
    ],
)  # fmt: skip
def test_what_cannot_take_images_is_refused_by_its_files_alone(tmp_path, config, what):
    with pytest.raises(StepError) as caught:
        image_inputs.specs(folder(tmp_path, config), "image-segmentation", IMAGES)
    assert caught.value.what == what


def test_images_are_channels_first(tmp_path):
    with pytest.raises(StepError, match="as NCHW, not as NHWC"):
        image_inputs.specs(folder(tmp_path, {"model_type": "vit"}), "image-classification", Images(layout="NHWC"))


def test_the_texts_of_siglip_have_one_length_and_those_of_clip_a_mask(tmp_path):
    siglip = {
        "model_type": "siglip",
        "text_config": {"max_position_embeddings": 64},
        "vision_config": {"image_size": 8},
    }
    clip = {"model_type": "clip", "text_config": {}, "vision_config": {"image_size": 8}}
    axes = image_inputs.axes(folder(tmp_path, siglip), "zero-shot-image-classification", IMAGES)
    assert axes == {"pixel_values": ("batch", 3, 8, 8), "input_ids": ("batch", "texts", 64)}
    assert image_inputs.axes(tmp_path, "feature-extraction", None) == {"input_ids": ("batch", 64)}
    axes = image_inputs.axes(folder(tmp_path, clip), "zero-shot-image-classification", IMAGES)
    assert axes["attention_mask"] == axes["input_ids"] == ("batch", "texts", "sequence")
