"""What nobody knows about a recipe's Triton image: each build says so, a build without changes, too."""

import json
import re

import onnx
import pytest
from onnx import TensorProto, helper
from program import Program

RECIPE = """\
name: net
model: {source: net.onnx}
target: {device: T4, runtime: tensorrt}
precision: fp32
profiles: [{rows: [1, 4, 8]}]
tensorrt: {version: "10.11.0.33"}
package: {triton: {image: nvcr.io/nvidia/tritonserver:25.06-py3}}
"""
UNKNOWN = "net: not verified: TensorRT 10.11.0.33 builds the engine, and the image 25.06-py3 is only"
WAITING = 3


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    """Where the jobs that need no GPU are built, with what the build printed."""
    folder = tmp_path_factory.mktemp("net")
    given = helper.make_tensor_value_info("x", TensorProto.FLOAT, ["rows", 4])
    answer = helper.make_tensor_value_info("y", TensorProto.FLOAT, ["rows", 4])
    graph = helper.make_graph([helper.make_node("Relu", ["x"], ["y"])], "net", [given], [answer])
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=10), folder / "net.onnx")
    (folder / "recipe.yaml").write_text(RECIPE)
    program = Program(folder)
    return program, program("build", "recipe.yaml")


def test_a_build_without_changes_says_again_that_the_image_is_not_verified(built):
    program, first = built
    assert f"note: {UNKNOWN}" in first.stderr
    again = program("build", "recipe.yaml", expect=first.returncode)
    assert "cached" in again.stderr
    assert "built" not in again.stderr
    assert re.search(r"^waiting in \d+\.\d{3} s", again.stderr, re.MULTILINE), "the snapshot answers"
    assert f"note: {UNKNOWN}" in again.stderr


def test_programs_and_show_get_it_too(built):
    program, first = built
    lines = [json.loads(line) for line in program("build", "recipe.yaml", "--json").stdout.splitlines()]
    [note] = [line["text"] for line in lines if line["event"] == "note"]
    assert note.startswith(UNKNOWN)
    assert first.returncode == WAITING
    shown = program("show", "recipe.yaml", expect=0).stdout
    assert "  warning: not verified: TensorRT 10.11.0.33 builds the engine" in shown
