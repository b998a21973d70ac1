"""What `recipe check` refuses of an ONNX file before a build."""

import graphs
import pytest
from onnx import helper

from engine import api
from engine.errors import RecipeError
from tests.support import models


@pytest.mark.parametrize(("inputs", "outputs", "name"), [(0, 4, "x"), (4, 0, "y")])
def test_a_tensor_without_numbers_is_refused(tmp_path, monkeypatch, inputs, outputs, name):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "pyproject.toml").write_text("")
    nodes = [helper.make_node("Expand" if not outputs else "ReduceSum", ["x", "shape"], ["y"])]
    shapes = [("x", graphs.FLOAT, ["batch", inputs])], [("y", graphs.FLOAT, ["batch", outputs])]
    weights = [helper.make_tensor("shape", graphs.INT64, [1], [1])]
    graphs.write(tmp_path / "net", graphs.graph(nodes, *shapes, weights))
    (tmp_path / "r.yaml").write_text("name: net\nmodel: {source: net/model.onnx}\nprofiles: [{batch: [1, 2, 4]}]\n")
    with pytest.raises(RecipeError, match=f"no tensor without numbers, and `{name}` is one"):
        api.check("r.yaml")


@pytest.mark.parametrize(("axis", "is_refused"), [("rows", True), ("batch", False), (None, False), ("unk__7", False)])
def test_a_batch_of_outputs_with_an_axis_of_their_own_is_refused_at_its_place(tmp_path, monkeypatch, axis, is_refused):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "pyproject.toml").write_text("")
    ends = [("x", graphs.FLOAT, ["batch", 8])], [("y", graphs.FLOAT, [axis, 4])]
    weights = [helper.make_tensor("shape", graphs.INT64, [2], [-1, 4])]
    nodes = [helper.make_node("Reshape", ["x", "shape"], ["y"])]
    graphs.write(tmp_path / "net", graphs.graph(nodes, *ends, weights))
    (tmp_path / "r.yaml").write_text(
        "name: net\nmodel: {source: net/model.onnx}\nprofiles: [{batch: [1, 2, 4]}]\n"
        "package: {triton: {max_batch_size: 4}}\n"
    )
    if not is_refused:
        assert api.check("r.yaml")
        return
    with pytest.raises(RecipeError, match=r"r\.yaml:4:36.* y begins with an axis of its own, `rows`"):
        api.check("r.yaml")


@pytest.mark.parametrize(
    ("fields", "place", "reason"),
    [
        ("postprocess: softmax", "3:14", "is float32 of 3 axes"),
        ("preprocess: {size: 64}\npostprocess: {boxes: {layout: yolov5}}", "2:41", "tells 79 classes apart"),
        ("postprocess: {boxes: {}}", "3:14", "say preprocess.size"),
    ],
)
def test_post_processing_that_does_not_suit_the_outputs_is_refused_at_its_place(
    tmp_path, monkeypatch, fields, place, reason
):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "pyproject.toml").write_text("")
    ends = [("x", graphs.FLOAT, [1, 3, 64, 64])], [("y", graphs.FLOAT, [1, 7, 84])]
    weights = [helper.make_tensor("ends", graphs.INT64, [4], [1, 3, 14, 14]),
               helper.make_tensor("shape", graphs.INT64, [3], [1, 7, 84])]  # fmt: skip
    nodes = [
        helper.make_node("Slice", ["x", "from", "ends"], ["a"]),
        helper.make_node("Reshape", ["a", "shape"], ["y"]),
    ]
    weights.append(helper.make_tensor("from", graphs.INT64, [4], [0] * 4))
    graphs.write(tmp_path / "net", graphs.graph(nodes, *ends, weights))
    recipe = "name: net\nmodel: {source: net/model.onnx, labels: [a, b, c]}\n"
    (tmp_path / "r.yaml").write_text(recipe + fields)
    with pytest.raises(RecipeError, match=rf"r\.yaml:{place}") as refused:
        api.check("r.yaml")
    assert reason in str(refused.value)
    (tmp_path / "r.yaml").write_text(f"{recipe}preprocess: {{size: 64}}\npostprocess: {{boxes: {{}}}}")
    assert api.check("r.yaml")


def test_labels_of_another_number_than_classes_are_refused(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "pyproject.toml").write_text("")
    models.onnx_vision(tmp_path / "net.onnx", batch=1)
    (tmp_path / "r.yaml").write_text(
        "name: net\nmodel: {source: net.onnx, task: image-classification, labels: [a, b, c]}\n"
    )
    with pytest.raises(RecipeError, match=r"tells 4 classes apart, and model\.labels names 3"):
        api.check("r.yaml")
