"""A model that became a graph of values and a file again is the same model, and its weights stay where they are."""

import graphs
import numpy as np
import pytest
from graphs import FLOAT
from onnx import helper, numpy_helper

from engine.errors import StepError
from engine.kit.onnx import ir_models, mapped_weights, onnx_files, surgery
from engine.kit.onnx.ir_models import Pipeline
from engine.kit.onnx.passes import linear_layers
from engine.kit.onnx.surgery import name_nodes
from engine.runtimes.onnxruntime import session as ort

WIDE = 256


def mapped(tmp_path):
    """Return the folder of a model whose large weights are in a file of their own."""
    onnx_files.save(graphs.layers(WIDE, WIDE), tmp_path / "model", threshold=0)
    return tmp_path / "model"


def test_a_model_with_bodies_comes_back_as_the_same_message():
    model = graphs.choice()
    del model.graph.value_info[:]
    once = ir_models.proto(ir_models.of(onnx_files.copied(model)))
    assert once.graph == model.graph
    assert ir_models.proto(ir_models.of(onnx_files.copied(once))) == once


def test_large_weights_are_mapped_on_the_way_in_and_out(tmp_path):
    model = ir_models.load(mapped(tmp_path))
    weight = model.graph.initializers["first"]
    assert (
        isinstance(surgery.numbers(weight).base, np.ndarray | memoryview) or not surgery.numbers(weight).flags.owndata
    )
    back = {tensor.name: tensor for tensor in ir_models.proto(model).graph.initializer}
    assert mapped_weights.extent(back["first"]).path == (tmp_path / "model/model.onnx.data").resolve()
    assert not back["first"].raw_data
    np.testing.assert_array_equal(surgery.numbers(weight), numpy_helper.to_array(graphs.weight("first", WIDE, WIDE)))


def test_two_saves_on_two_paths_have_the_same_bytes(tmp_path):
    contents = []
    for name in ("here", "there/and/deeper"):
        folder = tmp_path / name
        onnx_files.link(mapped(tmp_path), folder / "source")
        ir_models.save(ir_models.load(folder / "source"), folder / "saved")
        ir_models.save(ir_models.load(folder / "saved"), folder / "again")
        contents += [(folder / out / "model.onnx").read_bytes() for out in ("saved", "again")]
    assert len(set(contents)) == 1
    assert str(tmp_path).encode() not in contents[0]


@pytest.mark.parametrize("places", [np.array([3, 8]), np.array([[0, 3], [1, 3]])], ids=["counted", "by axis"])
def test_sparse_weights_become_dense_and_are_not_lost(tmp_path, places):
    nodes = [helper.make_node("MatMul", ["x", "w"], ["y"])]
    model = graphs.graph(nodes, [("x", FLOAT, ["n", 2])], [("y", FLOAT, ["n", 5])])
    values = helper.make_tensor("w", FLOAT, [2], [2.0, 3.0])
    model.graph.sparse_initializer.append(
        helper.make_sparse_tensor(values, numpy_helper.from_array(places.astype(np.int64)), [2, 5])
    )
    ir_models.save(ir_models.of(model), tmp_path)
    expected = np.zeros((1, 5), np.float32)
    expected[0, 3] = 5
    answer = ort.run(ort.session(tmp_path, threads=1), {"x": np.ones((1, 2), np.float32)})["y"]
    np.testing.assert_array_equal(answer, expected)


def test_axes_keep_names_that_are_expressions_or_no_identifiers():
    names = ["past_sequence_length + 1", "batch size", "?", "2*n", "é", ""]
    shape = [*names, 3]
    model = graphs.graph([helper.make_node("Relu", ["x"], ["y"])], [("x", FLOAT, shape)], [("y", FLOAT, shape)])
    dims = ir_models.proto(ir_models.of(model)).graph.input[0].type.tensor_type.shape.dim
    assert [dim.dim_param for dim in dims] == [*names, ""]


def test_a_message_has_no_second_description_of_a_stored_tensor():
    model = graphs.layers()
    model.graph.value_info.append(helper.make_tensor_value_info("first", FLOAT, [1, 2, 3]))
    assert not ir_models.proto(ir_models.of(model)).graph.value_info


def chain(*steps):
    """Return a model x [n] -> y [n] of Relu nodes, each from one tensor to another."""
    nodes = " ".join(f"{target} = Relu({source})" for source, target in steps)
    return graphs.parsed(f"(float[n] x) => (float[n] y) {{ {nodes} }}")


def test_nodes_that_stand_before_their_inputs_are_moved_and_others_stay():
    model = ir_models.of(chain(("a", "y"), ("x", "a")))
    assert [node.outputs[0].name for node in model.graph] == ["a", "y"]
    before = graphs.layers()
    assert ir_models.proto(ir_models.of(onnx_files.copied(before))).graph.node == before.graph.node


@pytest.mark.parametrize("steps", [(("x", "y"), ("x", "y")), (("a", "b"), ("b", "a"), ("x", "y"))])
def test_a_graph_that_makes_no_sense_is_a_clear_error(steps):
    with pytest.raises(StepError) as caught:
        ir_models.of(chain(*steps))
    assert caught.value.what == "The graph of the model cannot be changed"
    assert caught.value.facts


def broken(model, *, by):
    raise by


def test_passes_change_one_model_in_order_and_return_what_they_return():
    passes = Pipeline(ir_models.of(graphs.layers()))
    passes.run(linear_layers.split)
    passes.run(name_nodes, with_output=True)
    assert [node.op_type for node in passes.model.graph] == ["MatMul", "Add", "Relu", "MatMul"]
    assert passes.passes == ["linear_layers.split", "surgery.name_nodes"]
    assert passes.run(lambda model: model.graph.name) == "graph"


def test_an_error_names_the_pass_and_the_passes_before_it():
    passes = Pipeline(ir_models.of(graphs.layers()))
    passes.run(linear_layers.split)
    with pytest.raises(StepError) as caught:
        passes.run(broken, by=KeyError("no such tensor"))
    assert caught.value.what == "The graph of the model could not be changed"
    assert "no such tensor" in caught.value.facts[0]
    assert list(caught.value.facts[-2:]) == [
        "in the pass test_ir_models.broken",
        "passes before it: linear_layers.split",
    ]


def test_an_error_of_a_pass_keeps_its_text_and_its_hint():
    with pytest.raises(StepError) as caught:
        Pipeline(ir_models.of(graphs.layers())).run(broken, by=StepError("too small", ["of 3"], "take more"))
    assert (caught.value.what, caught.value.hint) == ("too small", "take more")
    assert list(caught.value.facts) == ["of 3", "in the pass test_ir_models.broken", "passes before it: none"]


def test_a_tool_takes_the_model_as_a_message_and_is_a_pass_as_well():
    def renamed(message):
        message.graph.name = "changed"
        return message

    passes = Pipeline(ir_models.of(graphs.layers()))
    passes.run_tool("a tool", renamed)
    assert passes.model.graph.name == "changed"
    assert passes.passes == ["a tool"]
