"""A large table that is only looked up is stored in int8 with a scale per row; any other tensor stays."""

import graphs
import numpy as np
import onnx
import pytest

from engine.kit.onnx import ir_models, onnx_files
from engine.kit.onnx.passes import embedding_tables
from engine.runtimes.onnxruntime import session as ort

ROWS, COLUMNS = 1024, 64
TABLE = np.random.default_rng(3).standard_normal((ROWS, COLUMNS)).astype(np.float32)
TABLE[7] = 0
TABLE[9] *= 1e4


def model(*more, rows=ROWS):
    """Return a model that looks `ids` up in a table, and of further nodes gives `z`."""
    outputs = ", ".join([f"float[n, {COLUMNS}] y", *(["float[] z"] if more else [])])
    text = f"(int64[n] ids) => ({outputs}) {{ [look_up] y = Gather(table, ids) {' '.join(more)} }}"
    return graphs.parsed(text, table=TABLE[:rows])


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
        model("z = MatMul(y, table)"), model("z = Gather<axis = 1>(table, ids)"), model("z = Identity(table)"),
        model(rows=1023),
    ],
    ids=["a weight as well", "columns are read", "given out", "small"],
)  # fmt: skip
def test_a_table_that_is_read_otherwise_or_small_stays(message):
    passed = ir_models.of(message)
    assert embedding_tables.quantize(passed) == []
    assert list(passed.graph.initializers) == ["table"]


WORDS = np.random.default_rng(0).standard_normal((40, 8)).astype("float32")


def tied(weight):
    """Words looked up in a table, and a layer over them."""
    text = "(int64[b, s] ids) => (float[b, s, n] out) { rows = Gather(table, ids) out = MatMul(rows, weight) }"
    return graphs.parsed(text, table=WORDS, weight=weight)


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
    square = np.random.default_rng(1).standard_normal((8, 8)).astype("float32")
    model = graphs.parsed(
        "(int64[n] ids) => (float[n, 8] y, float[n, 8] v) "
        "{ x = Gather(a, ids) y = MatMul(x, b) u = Gather(b, ids) v = MatMul(u, a) }",
        a=square, b=np.ascontiguousarray(square.T),
    )  # fmt: skip
    passed = ir_models.of(model)
    assert embedding_tables.untwin(passed) == ["a"]
    onnx.checker.check_model(ir_models.proto(passed), full_check=True)
