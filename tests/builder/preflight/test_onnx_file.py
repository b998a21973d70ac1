"""What `recipe check` refuses of an ONNX file before a build."""

import graphs
import pytest
from onnx import helper

from engine import api
from engine.errors import RecipeError


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
