"""A weight that is another one turned round is stored once, and nothing else is touched."""

import numpy as np
import onnx
from onnx import helper, numpy_helper

from engine.kit.onnx import onnx_files
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
    assert tied.untwin(tied_model) == ["weight"]
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
    tied_model = model(weight)
    before = tied_model.SerializeToString()
    assert tied.untwin(tied_model) == []
    assert tied_model.SerializeToString() == before
