"""A large table that is only looked up is stored in int8 with a scale per row; any other tensor stays."""

import graphs
import numpy as np
import onnx
import pytest
from graphs import FLOAT, INT64
from onnx import helper, numpy_helper

from engine.kit.onnx import ir_models, onnx_files
from engine.kit.onnx.passes import embedding_tables
from engine.runtimes.onnxruntime import session as ort

ROWS, COLUMNS = 1024, 64
TABLE = np.random.default_rng(3).standard_normal((ROWS, COLUMNS)).astype(np.float32)
TABLE[7] = 0
TABLE[9] *= 1e4


def model(*nodes, rows=ROWS):
    """Return a model that looks `ids` up in a table, with further nodes."""
    gather = helper.make_node("Gather", ["table", "ids"], ["y"], name="look_up")
    stored = [numpy_helper.from_array(TABLE[:rows], "table")]
    outputs = [("y", FLOAT, ["n", COLUMNS]), *((node.output[0], FLOAT, None) for node in nodes)]
    return graphs.graph([gather, *nodes], [("ids", INT64, ["n"])], outputs, stored)


def answer(folder, message, ids):
    onnx_files.save(message, folder)
    return ort.run(ort.session(folder, threads=1), {"ids": ids})["y"]


def test_rows_come_back_to_within_half_a_step_of_their_own_scale(tmp_path):
    passed = ir_models.of(model())
    assert embedding_tables.quantize(passed) == ["table"]
    ids = np.array([0, 7, 9, 1023])
    distance = np.abs(answer(tmp_path, ir_models.proto(passed), ids) - TABLE[ids])
    assert (distance.max(axis=1) <= np.abs(TABLE[ids]).max(axis=1) / 127 * 0.501).all()
    assert sorted(passed.graph.initializers) == ["table_int8", "table_scales"]
    assert passed.graph.initializers["table_int8"].const_value.nbytes == TABLE.size


@pytest.mark.parametrize(
    "message",
    [
        model(helper.make_node("MatMul", ["y", "table"], ["z"])),
        model(helper.make_node("Gather", ["table", "ids"], ["z"], axis=1)),
        model(helper.make_node("Identity", ["table"], ["z"])),
        model(rows=1023),
    ],
    ids=["a weight as well", "columns are read", "given out", "small"],
)
def test_a_table_that_is_read_otherwise_or_small_stays(message):
    passed = ir_models.of(message)
    assert embedding_tables.quantize(passed) == []
    assert list(passed.graph.initializers) == ["table"]


WORDS = np.random.default_rng(0).standard_normal((40, 8)).astype("float32")


def tied(weight):
    """Words looked up in a table, and a layer over them."""
    graph = helper.make_graph(
        [
            helper.make_node("Gather", ["table", "ids"], ["rows"]),
            helper.make_node("MatMul", ["rows", "weight"], ["out"]),
        ],
        "tied",
        [helper.make_tensor_value_info("ids", onnx.TensorProto.INT64, ["batch", "sequence"])],
        [helper.make_tensor_value_info("out", onnx.TensorProto.FLOAT, ["batch", "sequence", weight.shape[1]])],
        [numpy_helper.from_array(WORDS, "table"), numpy_helper.from_array(weight, "weight")],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


def test_a_table_that_is_also_a_layer_is_stored_once_and_answers_the_same(tmp_path):
    tied_model = tied(np.ascontiguousarray(WORDS.T))
    onnx_files.save(tied_model, tmp_path / "twice")
    passed = ir_models.of(onnx_files.copied(tied_model))
    assert embedding_tables.untwin(passed) == ["weight"]
    tied_model = ir_models.proto(passed)
    onnx.checker.check_model(tied_model)
    onnx_files.save(tied_model, tmp_path / "once")
    sizes = [(tmp_path / name / "model.onnx").stat().st_size for name in ("twice", "once")]
    assert sizes[0] - sizes[1] > 0.8 * WORDS.nbytes
    ids = {"ids": np.array([[3, 39, 0]])}
    first, second = (ort.run(ort.session(tmp_path / name, threads=1), ids)["out"] for name in ("twice", "once"))
    np.testing.assert_array_equal(first, second)


def test_a_weight_that_differs_in_one_number_stays(tmp_path):
    weight = np.ascontiguousarray(WORDS.T)
    weight[3, 5] += 1
    passed = ir_models.of(tied(weight))
    before = ir_models.proto(passed).SerializeToString()
    assert embedding_tables.untwin(passed) == []
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
    assert embedding_tables.untwin(passed) == ["a"]
    onnx.checker.check_model(ir_models.proto(passed), full_check=True)
