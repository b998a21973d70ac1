import os
import re

import graphs
import numpy as np
import onnx
import pytest
from graphs import FLOAT
from onnx import TensorProto, helper, numpy_helper

from engine.errors import StepError
from engine.kit.onnx import onnx_files


def test_weights_above_the_threshold_go_to_a_data_file_and_come_back(tmp_path):
    model, copy = graphs.layers(), graphs.layers()
    onnx_files.save(copy, tmp_path, threshold=10_000)
    assert sorted(os.listdir(tmp_path)) == ["model.onnx", "model.onnx.data"]
    assert (tmp_path / "model.onnx").stat().st_size < 5_000
    assert onnx_files.data_files(onnx_files.load_graph(tmp_path)) == ["model.onnx.data"]
    loaded = onnx_files.load(tmp_path)
    for before, after in zip(model.graph.initializer, loaded.graph.initializer, strict=True):
        assert np.array_equal(numpy_helper.to_array(before), numpy_helper.to_array(after))
    onnx.checker.check_model(str(tmp_path / "model.onnx"))


def test_the_data_file_holds_typed_data_and_constants_inside_nodes(tmp_path):
    values = np.arange(600, dtype=np.float32)
    typed = helper.make_tensor("typed", FLOAT, [600], values.tolist())
    model = graphs.parsed("(float[600] x) => (float[600] y) { d = Add(typed, c) y = Add(d, x) }", typed=typed)
    model.graph.node.insert(0, helper.make_node("Constant", [], ["c"], value=numpy_helper.from_array(values + 1)))
    onnx_files.save(model, tmp_path, threshold=100)
    assert (tmp_path / "model.onnx.data").stat().st_size == 4096 + 2400
    arrays = [numpy_helper.to_array(tensor) for tensor in onnx_files.tensors(onnx_files.load(tmp_path))]
    assert np.array_equal(arrays[0], values)
    assert np.array_equal(arrays[1], values + 1)


@pytest.mark.parametrize("threshold", [onnx_files.INLINE_LIMIT, 1000])
def test_the_same_model_gives_the_same_bytes_in_any_directory(tmp_path, threshold):
    for name in ("here", "somewhere/else"):
        onnx_files.save(graphs.layers(), tmp_path / name, threshold=threshold)
    for file in os.listdir(tmp_path / "here"):
        assert (tmp_path / "here" / file).read_bytes() == (tmp_path / "somewhere/else" / file).read_bytes()


def test_paths_of_the_machine_that_exported_are_removed_and_other_metadata_stays(tmp_path):
    model = graphs.layers()
    model.metadata_props.add(key="author", value="someone at 1/2 speed")
    model.metadata_props.add(key="trace", value='File "/home/someone/train.py", line 3')
    model.graph.node[0].metadata_props.add(key="stack", value="at C:\\Users\\someone\\train.py")
    model.graph.node[1].doc_string = "/opt/venv/lib/torch/nn/linear.py(114): forward"
    model.graph.node[2].doc_string = "input/output scaled"
    onnx_files.save(model, tmp_path)
    loaded = onnx_files.load(tmp_path)
    assert [(p.key, p.value) for p in loaded.metadata_props] == [("author", "someone at 1/2 speed")]
    assert not loaded.graph.node[0].metadata_props
    assert [node.doc_string for node in loaded.graph.node] == ["", "", "input/output scaled", ""]


def test_inputs_are_named_typed_and_shaped_without_weights_that_old_models_list_as_inputs():
    model = graphs.parsed("(float16[batch, 3, 4] x, int64[1] ids, float[4, 2] w) => (float[] y) { y = MatMul(x, w) }",
                          w=(4, 2))  # fmt: skip
    model.graph.input[0].type.tensor_type.shape.dim[1].Clear()
    assert onnx_files.inputs(model) == {
        "x": onnx_files.Input("x", "float16", ("batch", "x_1", 4)),
        "ids": onnx_files.Input("ids", "int64", (1,)),
    }
    assert onnx_files.outputs(model) == {"y": onnx_files.Input("y", "float32", (), ranked=False)}


def test_an_input_that_is_no_tensor_is_refused_by_name():
    model = graphs.layers()
    element = helper.make_tensor_type_proto(FLOAT, ["n"])
    model.graph.input.append(helper.make_value_info("many", helper.make_sequence_type_proto(element)))
    with pytest.raises(StepError, match="many is no tensor but a sequence"):
        onnx_files.inputs(model)


def test_nodes_and_tensors_inside_bodies_are_found():
    assert [node.op_type for node in onnx_files.nodes(graphs.loop())] == ["Loop", "MatMul", "Identity"]
    names = [tensor.name for tensor in onnx_files.tensors(graphs.choice())]
    assert sorted(names) == ["else_branch_w", "then_branch_w"]


def test_a_missing_file_is_told_with_what_is_there(tmp_path):
    (tmp_path / "weights.bin").write_bytes(b"")
    with pytest.raises(StepError) as caught:
        onnx_files.load(tmp_path)
    assert str(caught.value) == "There is no model.onnx in the model's directory\n  it holds: weights.bin"


@pytest.mark.parametrize("content", [b"", b"<html>404</html>", b"\x00" * 64, "truncated"])
def test_a_file_that_is_no_onnx_is_told_so(tmp_path, content):
    if content == "truncated":
        whole = graphs.layers().SerializeToString()
        content = whole[: len(whole) // 2]
    (tmp_path / "model.onnx").write_bytes(content)
    with pytest.raises(StepError, match=r"model\.onnx is no ONNX model") as caught:
        onnx_files.load(tmp_path)
    assert "cut-off download" in str(caught.value)


def test_external_data_that_is_cut_off_or_missing_is_told_by_the_name_of_the_file(tmp_path):
    onnx_files.save(graphs.layers(), tmp_path, threshold=1000)
    with (tmp_path / "model.onnx.data").open("r+b") as file:
        file.truncate(100)
    with pytest.raises(StepError) as caught:
        onnx_files.load(tmp_path)
    assert "the external data of model.onnx is cut off: model.onnx.data" in str(caught.value)
    assert "100 bytes, but the model reads up to byte" in str(caught.value)
    (tmp_path / "model.onnx.data").unlink()
    with pytest.raises(StepError, match=r"external data of model\.onnx is missing: model\.onnx\.data") as caught:
        onnx_files.load(tmp_path)
    assert "put the file beside the model" in str(caught.value)


@pytest.mark.parametrize("place", ["../secret", "link"])
def test_external_data_outside_of_the_directory_is_refused(tmp_path, place):
    onnx_files.save(graphs.layers(), tmp_path / "model", threshold=1000)
    (tmp_path / "model/model.onnx.data").rename(tmp_path / "secret")
    (tmp_path / "model/link").symlink_to(tmp_path / "secret")
    graph = onnx_files.load_graph(tmp_path / "model")
    for tensor in onnx_files.tensors(graph):
        for entry in tensor.external_data:
            if entry.key == "location":
                entry.value = place
    onnx_files.save(graph, tmp_path / "model")
    with pytest.raises(StepError, match=f"outside its own directory\n.*{re.escape(repr(place))}"):
        onnx_files.load(tmp_path / "model")


def test_weights_of_less_than_a_byte_come_back_from_external_data(tmp_path):
    stored = helper.make_tensor("w", TensorProto.INT4, [3001], [-3, 7, 1] * 1000 + [5])
    text = "() => (float[3001] y) { y = DequantizeLinear(w, scale) }"
    onnx_files.save(graphs.parsed(text, opset=21, w=stored, scale=np.float32(1)), tmp_path, threshold=100)
    assert (tmp_path / "model.onnx.data").stat().st_size == 1501
    assert numpy_helper.to_array(onnx_files.load(tmp_path).graph.initializer[0]).tolist()[-2:] == [1, 5]


def test_linked_files_share_their_bytes_on_disk(tmp_path):
    (tmp_path / "a/sub").mkdir(parents=True)
    (tmp_path / "a/model.onnx").write_bytes(b"1")
    (tmp_path / "a/sub/more").write_bytes(b"2")
    onnx_files.link(tmp_path / "a", tmp_path / "b")
    assert (tmp_path / "b/model.onnx").samefile(tmp_path / "a/model.onnx")
    assert (tmp_path / "b/sub/more").read_bytes() == b"2"


def test_files_are_copied_where_the_disk_cannot_link(tmp_path, monkeypatch):
    def refuse(*_):
        raise OSError("cross-device link")

    (tmp_path / "a").mkdir()
    (tmp_path / "a/model.onnx").write_bytes(b"1")
    monkeypatch.setattr(os, "link", refuse)
    onnx_files.link(tmp_path / "a", tmp_path / "b")
    assert (tmp_path / "b/model.onnx").read_bytes() == b"1"
    assert not (tmp_path / "b/model.onnx").samefile(tmp_path / "a/model.onnx")


def test_producers_and_stored_tensors_are_told_and_taken_out_by_name():
    graph = graphs.layers().graph
    assert onnx_files.producers(graph)["c"].op_type == "Relu"
    assert onnx_files.initializers(graph).keys() == {"first", "bias", "second"}
    onnx_files.remove_named(graph.initializer, {"bias", "nothing"})
    assert [tensor.name for tensor in graph.initializer] == ["first", "second"]
