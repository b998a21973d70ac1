"""What the image processors of transformers do: their defaults, and what nothing here can do in their place."""

import pytest

from engine.errors import StepError
from engine.kit.images import processors

NOT_A_FIELD = ("never",)


@pytest.mark.parametrize("name", processors.DEFAULTS)
def test_the_defaults_of_a_class_are_those_of_transformers(name):
    transformers = pytest.importorskip("transformers", reason="transformers is not installed")
    own = getattr(transformers, f"{name}ImageProcessorPil")()
    for field, value in processors.DEFAULTS[name].items():
        theirs = getattr(own, field, None)
        if field in NOT_A_FIELD or field in processors.DEFAULTS[name]["never"]:
            continue
        if field.startswith("do_"):
            assert bool(value) == bool(theirs), field
        elif field in ("size", "crop_size", "pad_size") and value is not None:
            square = processors.DEFAULTS[name]["default_to_square"] or field != "size"
            assert processors._size(value, square=square) == dict(theirs), field
        else:
            assert (list(theirs) if isinstance(theirs, tuple) else theirs) == value, field


@pytest.mark.parametrize(
    ("file", "name"),
    [
        ({"image_processor_type": "CLIPImageProcessor"}, "CLIP"),
        ({"image_processor_type": "ViTImageProcessorFast"}, "ViT"),
        ({"image_processor_type": "BitImageProcessorPil"}, "Bit"),
        ({"feature_extractor_type": "DetrFeatureExtractor"}, "Detr"),
        ({}, ""),
    ],
)
def test_old_and_new_names_mean_one_class(file, name):
    assert processors.name_of(file) == name


@pytest.mark.parametrize(
    ("name", "file", "fact"),
    [
        ("Siglip2", {}, "its image processor is Siglip2ImageProcessor"),
        ("", {}, "no file names its image processor"),
        ("ViT", {"size": "large"}, "a size in its files is 'large'"),
        ("ViT", {"size": {"longest_edge": 30}}, "{'longest_edge': 30}"),
        ("CLIP", {"crop_size": {"shortest_edge": 30}}, "{'shortest_edge': 30}"),
        ("RTDetr", {"size": 640}, "RTDetrImageProcessor with"),
        ("DPT", {"keep_aspect_ratio": True}, "keep_aspect_ratio True"),
        ("ConvNext", {"do_center_crop": True, "crop_size": 224}, "do_center_crop True"),
    ],
)
def test_what_is_not_known_is_refused_by_name(name, file, fact):
    with pytest.raises(StepError, match="recipe does not know how this model's images are prepared") as caught:
        processors.settings(name, file)
    assert fact in str(caught.value)
    assert "preprocess: {size" in caught.value.hint
