"""What `recipe check` refuses of images, at the place of the field, before a build meets it in a job."""

import json

import graphs
import pytest
from onnx import TensorProto, helper

from engine import api
from engine.errors import RecipeError
from tests.support import image_models

_IMAGE = ("x", graphs.FLOAT, ["batch", 3, 32, 32])
_FREE = ("x", graphs.FLOAT, ["batch", 3, "height", "width"])
_GREY = ("x", graphs.FLOAT, ["batch", 1, 32, 32])
_BYTES = ("x", TensorProto.UINT8, ["batch", 3, 32, 32])
_CLASSES = [("y", graphs.FLOAT, ["batch", 5])]
_OF_TASK = "model: {source: net/model.onnx, task: image-classification}\n"
_OWN = "model: {source: net/model.onnx}\n"


def _write(folder, inputs, outputs):
    """Write a network whose outputs are what `Expand` makes of a constant: only its signature counts."""
    nodes, weights = [], []
    for name, dtype, shape in outputs:
        numbers = [size if isinstance(size, int) else 1 for size in shape]
        weights.append(helper.make_tensor(f"{name}_shape", graphs.INT64, [len(numbers)], numbers))
        weights.append(helper.make_tensor(f"{name}_value", dtype, [1], [1]))
        nodes.append(helper.make_node("Expand", [f"{name}_value", f"{name}_shape"], [name]))
    graphs.write(folder / "net", graphs.graph(nodes, inputs, outputs, weights))


@pytest.fixture
def check(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "pyproject.toml").write_text("")

    def checked(recipe, inputs=(), outputs=()):
        if inputs:
            _write(tmp_path, inputs, outputs)
        sizes = "" if "profiles:" in recipe or ".onnx" not in recipe else "\nprofiles: [{batch: 1}]"
        (tmp_path / "r.yaml").write_text(f"name: net\n{recipe}{sizes}")
        return api.check("r.yaml")

    return checked


@pytest.mark.parametrize(
    ("image", "fields", "place", "reason"),
    [
        (_IMAGE, "preprocess: {size: 32, layout: NHWC}", "3:32", r"not NHWC, but \[3, 32, 32\]"),
        (_IMAGE, "preprocess: {size: 64}", "3:20", "another size than the model takes"),
        (_IMAGE, "preprocess: {size: 32, crop: 40}", "3:30", r"another size .*\n.*\n.*\n.*\[32, 32\]"),
        (_IMAGE, "preprocess: {size: {shortest_edge: 32}}", "3:20", "another size than the model takes"),
        (_IMAGE, "preprocess: {size: 32, mean: [1, 2]}", "3:30", "3 channels, and mean is"),
        (_IMAGE, "preprocess: {size: 32, std: [1, 2]}", "3:29", "3 channels, and std is"),
        (_IMAGE, "preprocess: {size: 32, channels: L}", "3:34", "channels: RGB or BGR"),
        (_GREY, "preprocess: {size: 32, channels: BGR}", "3:34", "channels: L"),
        (_BYTES, "preprocess: {size: 32, scale: 0.5}", "3:31", "uint8, which nothing scales"),
        (_FREE, "preprocess: {mean: 0.5}\nprofiles: [{batch: 1, height: 9, width: 9}]", "3:13", "size: 224"),
        (_FREE, "preprocess: {size: 8}\nprofiles: [{batch: 1, height: 8, width: 9}]", "3:20", "the width 8, and"),
        (_IMAGE, "preprocess: {size: 32}\npostprocess: softmax", "4:14", "the task image-classification each say"),
    ],
)
def test_a_field_that_does_not_suit_the_image_is_refused_at_its_place(check, image, fields, place, reason):
    with pytest.raises(RecipeError, match=rf"r\.yaml:{place}: (.*\n)*.*{reason}"):
        check(_OF_TASK + fields, [image], _CLASSES)


@pytest.mark.parametrize(
    ("fields", "outputs", "place", "reason"),
    [
        ((_OWN, "postprocess: {boxes: {}}"), [("y", ["batch", 84, 7])], "4:14", "as yolov8 it has 7 boxes of 84"),
        ((_OWN, "postprocess: {boxes: {layout: yolov5}}"), [("y", ["batch", 6, 84])], "4:14", "6 boxes of 84 numbers"),
        ((_OWN, "postprocess: {boxes: {layout: separate, outputs: [b, s]}}"),
         [("b", ["batch", 9, 4]), ("s", ["batch", 8, 2])], "4:14", "it has 9 boxes, and scores of 8"),
        (("model: {source: net/model.onnx, task: object-detection}\n", ""), [("y", ["batch", 6, 84])], "2:39",
         r"postprocess: \{boxes: \{layout: yolov8"),
        (("model: {source: net/model.onnx, labels: [a, b]}\n", "postprocess: softmax"), [("y", ["batch", 5])], "2:41",
         "give 5 names"),
        ((_OWN, "postprocess: {boxes: {}}\npackage: {answers: {threshold: 0.3}}"), [("y", ["batch", 6, 84])], "5:21",
         "move threshold to `boxes`"),
    ],
)  # fmt: skip
def test_answers_that_the_outputs_do_not_have_are_refused_at_their_place(check, fields, outputs, place, reason):
    ends = [(name, graphs.FLOAT, shape) for name, shape in outputs]
    with pytest.raises(RecipeError, match=rf"r\.yaml:{place}: (.*\n)*.*{reason}"):
        check("preprocess: {size: 32}\n".join(fields), [_IMAGE], ends)


def test_what_suits_the_network_passes(check):
    ends = [("b", graphs.FLOAT, ["batch", 9, 4]), ("s", graphs.FLOAT, ["batch", 2, 9])]
    fields = "preprocess: {size: 32, mean: 0.5}\npostprocess: {boxes: {layout: separate, outputs: [b, s]}}"
    assert check(_OWN + fields, [_IMAGE], ends)
    fields = "preprocess: {size: {shortest_edge: 40}}\nprofiles: [{batch: 1, height: 50, width: 40}]"
    assert check(_OF_TASK + fields, [_FREE], _CLASSES)


def test_preprocess_of_a_network_with_another_input_needs_tensors_as_samples(check):
    inputs = [_IMAGE, ("age", graphs.FLOAT, ["batch", 1])]
    with pytest.raises(RecipeError, match=r"r\.yaml:3:13: image files become one input.*\n(.*\n)*.*age: float32"):
        check(_OWN + "preprocess: {size: 32}", inputs, _CLASSES)


@pytest.mark.parametrize(
    ("change", "fields", "refusal"),
    [
        ({"image_processor_type": "OtherImageProcessor"}, "", r"2:17: .*(.*\n)*.*OtherImageProcessor"),
        ({}, "preprocess: {mean: [1, 2]}", "3:20: .*3 channels, and mean is"),
        ({}, "preprocess: {layout: NHWC}", "3:22: .*as NCHW, not as NHWC"),
    ],
)
def test_a_checkpoint_whose_images_nothing_prepares_is_refused(tmp_path, check, change, fields, refusal):
    folder = image_models.write(_VIT, tmp_path / "model")
    file = folder / "preprocessor_config.json"
    file.write_text(json.dumps({**json.loads(file.read_text()), **change}))
    with pytest.raises(RecipeError, match=rf"r\.yaml:{refusal}"):
        check(f"model: {{source: model, task: image-classification}}\n{fields}")


def test_a_checkpoint_of_one_channel_says_how_to_go_on(tmp_path, check):
    folder = image_models.write(_VIT, tmp_path / "model")
    config = folder / "config.json"
    config.write_text(json.dumps({**json.loads(config.read_text()), "num_channels": 1}))
    with pytest.raises(RecipeError, match=r"preprocess: \{channels: L, mean: 0\.5, std: 0\.5\}"):
        check("model: {source: model, task: image-classification}\n")
    assert check("model: {source: model, task: image-classification}\npreprocess: {channels: L, mean: 0.5, std: 0.5}\n")


_VIT = next(name for name in image_models.NAMES if name.startswith("vit"))
