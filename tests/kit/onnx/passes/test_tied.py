"""A weight that is another one turned round is stored once, and nothing else is touched."""

import graphs
import numpy as np
import onnx
from graphs import FLOAT, INT64
from onnx import helper, numpy_helper

from engine.kit.onnx import ir_models, onnx_files
from engine.kit.onnx.passes import tied
from engine.runtimes.onnxruntime import session as ort

TABLE = np.random.default_rng(0).standard_normal((40, 8)).astype("float32")


def model(weight):
    """Words looked up in a table, and a layer over them."""
    graph = helper.make_graph(
        [
            helper.make_node("Gather", ["table", "ids"], ["rows"]),
            helper.make_node("MatMul", ["rows", "weight"], ["out"]),
        ],
        "tied",
        [helper.make_tensor_value_info("ids", onnx.TensorProto.INT64, ["batch", "sequence"])],
        [helper.make_tensor_value_info("out", onnx.TensorProto.FLOAT, ["batch", "sequence", weight.shape[1]])],
        [numpy_helper.from_array(TABLE, "table"), numpy_helper.from_array(weight, "weight")],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


def test_a_table_that_is_also_a_layer_is_stored_once_and_answers_the_same(tmp_path):
    tied_model = model(np.ascontiguousarray(TABLE.T))
    onnx_files.save(tied_model, tmp_path / "twice")
    passed = ir_models.of(onnx_files.copied(tied_model))
    assert tied.untwin(passed) == ["weight"]
    tied_model = ir_models.proto(passed)
    onnx.checker.check_model(tied_model)
    onnx_files.save(tied_model, tmp_path / "once")
    sizes = [(tmp_path / name / "model.onnx").stat().st_size for name in ("twice", "once")]
    assert sizes[0] - sizes[1] > 0.8 * TABLE.nbytes
    ids = {"ids": np.array([[3, 39, 0]])}
    first, second = (ort.run(ort.session(tmp_path / name, threads=1), ids)["out"] for name in ("twice", "once"))
    np.testing.assert_array_equal(first, second)


def test_a_weight_that_differs_in_one_number_stays(tmp_path):
    weight = np.ascontiguousarray(TABLE.T)
    weight[3, 5] += 1
    passed = ir_models.of(model(weight))
    before = ir_models.proto(passed).SerializeToString()
    assert tied.untwin(passed) == []
    assert ir_models.proto(passed).SerializeToString() == before


def test_of_two_tables_that_are_each_others_layer_one_stays():
    nodes = [
        helper.make_node("Gather", ["a", "ids"], ["x"]),
        helper.make_node("MatMul", ["x", "b"], ["y"]),
        helper.make_node("Gather", ["b", "ids"], ["u"]),
        helper.make_node("MatMul", ["u", "a"], ["v"]),
    ]
    square = np.random.default_rng(1).standard_normal((8, 8)).astype("float32")
    weights = [numpy_helper.from_array(square, "a"), numpy_helper.from_array(np.ascontiguousarray(square.T), "b")]
    rows = graphs.graph(nodes, [("ids", INT64, ["n"])], [("y", FLOAT, ["n", 8]), ("v", FLOAT, ["n", 8])], weights)
    passed = ir_models.of(rows)
    assert tied.untwin(passed) == ["a"]
    onnx.checker.check_model(ir_models.proto(passed), full_check=True)
