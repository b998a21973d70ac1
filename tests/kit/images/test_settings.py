"""Settings of an image preparation, from a model's own files, the recipe and the exported graph."""

import io
import json

import numpy as np
import pytest

from engine.errors import StepError
from engine.kit.images import settings
from engine.kit.images.preparation import Preparation
from engine.kit.onnx.onnx_files import Input

ALSO = {"pixel_mask": Input("pixel_mask", "int64", ("batch", "height", "width"))}


def graph(*sides, dtype="float32", last=False, channels=3, name="pixel_values"):
    shape = ("batch", *sides, channels) if last else ("batch", channels, *sides)
    return {name: Input(name, dtype, shape)}


def checkpoint(folder, file, config=None):
    folder.mkdir(exist_ok=True)
    (folder / "config.json").write_text(json.dumps(config or {"model_type": "vit"}))
    if file is not None:
        (folder / "preprocessor_config.json").write_text(json.dumps(file))
    return folder


def onnx_file(folder):
    (folder / "model.onnx").write_bytes(b"")
    return folder


def some(made, *names):
    return {name: made[name] for name in names}


CLIP = {"image_processor_type": "CLIPImageProcessor", "size": {"shortest_edge": 256}, "crop_size": 224}
EDGES = {"shortest_edge": 60, "longest_edge": 90}
DETR = {"image_processor_type": "DetrImageProcessor"}


def test_a_nested_image_processor_comes_before_a_file_of_its_own(tmp_path):
    folder = checkpoint(tmp_path, {"image_processor_type": "ViTImageProcessor", "size": 99})
    (folder / "processor_config.json").write_text(json.dumps({"image_processor": CLIP, "tokenizer_class": "x"}))
    made = settings.of_checkpoint(folder, graph("height", "width"), {})
    assert some(made, "resize", "crop") == {"resize": {"shortest_edge": 256}, "crop": [224, 224]}
    assert json.loads(json.dumps(made)) == made


def test_a_model_without_images_or_without_a_word_about_them_has_no_settings(tmp_path):
    texts = {"input_ids": Input("input_ids", "int64", ("batch", "sequence"))}
    folder = checkpoint(tmp_path, CLIP)
    assert settings.of_checkpoint(folder, texts, {}) is None
    assert settings.of_checkpoint(folder, graph(4, 4) | graph(4, 4, name="other"), {}) is None
    (folder / "preprocessor_config.json").unlink()
    assert settings.of_checkpoint(folder, graph(4, 4), {}) is None
    assert settings.of_checkpoint(onnx_file(tmp_path), graph(4, 4), {}) is None


def test_images_of_other_channels_have_none_and_the_log_says_so(tmp_path, capsys):
    assert settings.of_checkpoint(checkpoint(tmp_path, CLIP), graph(4, 4, channels=4), {}) is None
    assert "images have 4 channels" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("file", "preprocess", "expected"),
    [
        (CLIP, {"size": 448}, {"resize": {"shortest_edge": 512}, "crop": [448, 448]}),
        (CLIP, {"size": {"height": 448, "width": 224}}, {"resize": {"cover": [512, 256]}, "crop": [448, 224]}),
        (CLIP, {"size": 300, "crop": 280}, {"resize": {"shortest_edge": 300}, "crop": [280, 280]}),
        (CLIP, {"crop": 200}, {"resize": {"shortest_edge": 256}, "crop": [200, 200]}),
        (CLIP, {"size": 224, "fit": "stretch"}, {"resize": {"height": 256, "width": 256}, "crop": [224, 224]}),
        (CLIP, {"resample": "nearest", "scale": 2}, {"resample": 0, "scale": 2}),
        (CLIP, {"mean": (0.5,)}, {"normalize": [[[0.5] * 3, [0.26862954, 0.26130258, 0.27577711]]]}),
        (DETR, {"size": 64}, {"resize": {"height": 64, "width": 64}, "pad": "batch"}),
        (DETR, {"size": EDGES}, {"resize": EDGES, "pad": "batch"}),
        (CLIP, {"channels": "BGR"}, {"reversed": True, "mode": "RGB"}),
    ],
)  # fmt: skip
def test_fields_of_the_recipe_replace_those_of_the_checkpoint(tmp_path, file, preprocess, expected):
    made = settings.of_checkpoint(checkpoint(tmp_path, file), graph("height", "width") | ALSO, preprocess)
    assert some(made, *expected) == expected
    assert made["mask"] == "pixel_mask"


def test_detectors_pad_to_the_graphs_size_where_it_is_fixed(tmp_path):
    folder = checkpoint(tmp_path, {**DETR, "size": {"shortest_edge": 60, "longest_edge": 90}})
    assert settings.of_checkpoint(folder, graph(96, 90), {})["pad"] == [96, 90]
    with pytest.raises(StepError, match="takes images of another size"):
        settings.of_checkpoint(folder, graph(64, 64), {})


@pytest.mark.parametrize(
    ("preprocess", "expected"),
    [
        ({"scale": 1.0}, {"resize": {"height": 8, "width": 6}, "scale": 1.0, "crop": None, "resample": 2}),
        ({"size": {"height": 8, "width": 6}}, {"resize": {"height": 8, "width": 6}, "scale": 1 / 255}),
        ({"fit": "crop"}, {"resize": {"cover": [8, 6]}, "crop": [8, 6]}),
        ({"size": 16, "crop": {"height": 8, "width": 6}}, {"resize": {"shortest_edge": 16}, "crop": [8, 6]}),
        ({"fit": "letterbox"}, {"resize": {"inside": [8, 6]}, "crop": [8, 6], "fill": [114] * 3}),
        ({"mean": (0.5,), "std": (0.1, 0.2, 0.3)}, {"normalize": [[[0.5] * 3, [0.1, 0.2, 0.3]]]}),
    ],
)
def test_the_recipe_alone_says_how_the_images_of_an_onnx_file_are_prepared(tmp_path, preprocess, expected):
    made = settings.of_checkpoint(onnx_file(tmp_path), graph(8, 6, name="input"), preprocess)
    assert some(made, *expected) == expected
    assert some(made, "output", "upright", "half_even") == {"output": "input", "upright": True, "half_even": True}


@pytest.mark.parametrize("last", [True, False])
def test_a_graph_that_takes_the_pixels_themselves_gets_them(tmp_path, last):
    image = pytest.importorskip("PIL.Image", reason="Pillow is not installed: no image can be prepared")
    pixels = np.arange(8 * 6 * 3, dtype=np.uint8).reshape(8, 6, 3)
    file = io.BytesIO()
    image.fromarray(pixels).save(file, "PNG")
    made = settings.of_checkpoint(
        onnx_file(tmp_path), graph(8, 6, dtype="uint8", last=last), {"size": {"height": 8, "width": 6}}
    )
    [tensor] = Preparation(made).tensors([file.getvalue()])["pixel_values"]
    assert tensor.dtype == np.uint8
    assert np.array_equal(tensor if last else tensor.transpose(1, 2, 0), pixels)
    with pytest.raises(StepError, match="takes uint8, which nothing scales"):
        settings.of_checkpoint(onnx_file(tmp_path), graph(8, 6, dtype="uint8"), {"mean": (0.5,)})


def test_grey_models_take_one_channel(tmp_path):
    made = settings.of_checkpoint(onnx_file(tmp_path), graph(8, 6, channels="channels"), {"channels": "L"})
    assert some(made, "mode", "fill") == {"mode": "L", "fill": [0]}
    with pytest.raises(StepError, match="images have 3 channels"):
        settings.of_checkpoint(onnx_file(tmp_path), graph(8, 6), {"channels": "L"})
    with pytest.raises(StepError, match="3 channels, and mean is"):
        settings.of_checkpoint(onnx_file(tmp_path), graph(8, 6), {"mean": (0.5, 0.5)})


def test_a_graph_without_a_size_needs_one_to_fit_images_to(tmp_path):
    with pytest.raises(StepError, match="nothing says the size to fit images to"):
        settings.of_checkpoint(onnx_file(tmp_path), graph("height", "width"), {"fit": "crop"})


def test_the_recipe_can_stand_in_for_an_image_processor_that_is_not_known(tmp_path):
    folder = checkpoint(tmp_path, {"image_processor_type": "NovelImageProcessor"})
    with pytest.raises(StepError, match="recipe does not know how") as caught:
        settings.of_checkpoint(folder, graph(8, 8), {"size": 8})
    assert "its image processor is NovelImageProcessor" in str(caught.value)
    made = settings.of_checkpoint(folder, graph(8, 8), {"size": 8, "mean": (0.5,), "std": (0.5,)})
    assert made["resize"] == {"height": 8, "width": 8}


@pytest.mark.parametrize(
    ("mode", "pct", "expected"),
    [("center", 0.9, {"resize": {"shortest_edge": 248}, "fill": [0] * 3}),
     ("squash", 0.95, {"resize": {"height": 235, "width": 235}, "fill": [0] * 3}),
     ("border", 1.0, {"resize": {"inside": [224, 224]}, "fill": [128] * 3})],
)  # fmt: skip
def test_timms_settings_are_taken_from_its_config(tmp_path, mode, pct, expected):
    config = {"architecture": "vit", "pretrained_cfg": {"crop_mode": mode, "crop_pct": pct, "mean": [0.5] * 3}}
    folder = checkpoint(tmp_path, None, config)
    for preprocess in ({}, {"size": 224, "layout": "NCHW"}):
        made = settings.of_checkpoint(folder, graph(224, 224, name="images"), preprocess)
        assert some(made, *expected) == expected
        assert some(made, "crop", "upright", "half_even") == {"crop": [224, 224], "upright": False, "half_even": True}
        assert made["normalize"] == [[[0.5] * 3, [0.229, 0.224, 0.225]]]
