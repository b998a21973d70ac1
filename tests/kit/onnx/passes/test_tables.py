"""A large table that is only looked up is stored in int8 with a scale per row; any other tensor stays."""

import graphs
import numpy as np
import pytest
from graphs import FLOAT, INT64
from onnx import helper, numpy_helper

from engine.kit.onnx import ir_models, onnx_files
from engine.kit.onnx.passes import tables
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
    assert tables.quantize(passed) == ["table"]
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
    assert tables.quantize(passed) == []
    assert list(passed.graph.initializers) == ["table"]
