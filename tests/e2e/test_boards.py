"""A GPU whose name does not tell which board it is: `check` and each build say once how it is read."""

import onnx
from onnx import TensorProto, helper
from program import Program

RECIPE = """\
name: net
model: {source: net.onnx}
target: {runtime: tensorrt}
profiles: [{rows: [1, 4, 8]}]
matrix: {target.device: [A100, A100-80GB], tensorrt.optimization_level: [2, 3]}
"""
NOTE = "note: A100 is read as A100-40GB; write A100-80GB for 80 GiB"
WAITING = 3


def test_it_is_said_once_by_check_and_by_each_build(tmp_path):
    ends = [helper.make_tensor_value_info(name, TensorProto.FLOAT, ["rows", 4]) for name in "xy"]
    graph = helper.make_graph([helper.make_node("Relu", ["x"], ["y"])], "net", ends[:1], ends[1:])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=10)
    onnx.save(model, tmp_path / "net.onnx")
    (tmp_path / "recipe.yaml").write_text(RECIPE)
    program = Program(tmp_path)
    assert program("check", "recipe.yaml", expect=0).stdout.splitlines().count(NOTE) == 1
    for _ in range(2):  # the second build is answered by its snapshot
        assert program("build", "recipe.yaml", expect=WAITING).stderr.splitlines().count(NOTE) == 1
    assert program("check", "recipe.yaml", expect=0).stdout.splitlines().count(NOTE) == 1
    plain = program("check", "recipe.yaml", "--only", "target.device=A100-80GB", expect=0)
    assert NOTE not in plain.stdout
