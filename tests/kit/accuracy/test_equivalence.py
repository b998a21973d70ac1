import graphs
import numpy as np
import onnx
import pytest
from onnx import helper, numpy_helper

from engine.kit.accuracy import equivalence
from engine.kit.inputs import index_ranges
from engine.kit.onnx import onnx_files
from engine.runtimes.onnxruntime import session as ort


def changed(tmp_path, original, change):
    model = onnx_files.load(original)
    change(model)
    onnx_files.save(model, tmp_path / "changed")
    return tmp_path / "changed"


def test_a_model_agrees_with_itself_at_every_level_of_optimization(tmp_path):
    ort.optimize(graphs.tiny("bert"), tmp_path / "extended", level="extended")
    assert equivalence.difference(graphs.tiny("bert"), tmp_path / "extended") is None


def test_masks_are_full_right_padded_left_padded_and_holed_and_keep_a_token_in_each_row():
    model = onnx_files.load_graph(graphs.tiny("bert"))
    masks = {kind: inputs["attention_mask"] for kind, inputs in equivalence.trials(model)}
    assert list(masks) == ["full", "right-padded", "left-padded", "holed"]
    assert masks["full"].all()
    assert masks["right-padded"].tolist()[1] == [1, 1, 1, 1, 1, 1, 0, 0]
    assert masks["left-padded"].tolist()[1] == [0, 0, 1, 1, 1, 1, 1, 1]
    assert masks["holed"].tolist()[0] == [1, 0, 1, 1, 0, 1, 1, 0]
    assert all(mask.any(axis=1).all() for mask in masks.values())


def test_indices_stay_within_the_table_that_they_are_looked_up_in():
    model = onnx_files.load_graph(graphs.tiny("bert"))
    rows = {tensor.name: tensor.dims[0] for tensor in model.graph.initializer}
    words = next(count for name, count in rows.items() if name.endswith("word_embeddings.weight"))
    assert index_ranges.of(model) == {"input_ids": words, "token_type_ids": 2}
    for _, inputs in equivalence.trials(model):
        assert inputs["input_ids"].max() < words
        assert inputs["token_type_ids"].max() < 2


def test_a_mask_that_is_read_as_a_length_is_caught_by_the_masks_that_are_no_length(tmp_path):
    """The trap that fusion with its default options falls into: position < number of ones."""

    def right_padded_only(model):
        by_length = graphs.parsed(
            "(int64[n] attention_mask) => (int64[n] by_length) { "
            "lengths = ReduceSum<keepdims = 1>(attention_mask, axis_one) zeros = Mul(attention_mask, none) "
            "ones = Add(zeros, one) positions = CumSum(ones, one) kept = LessOrEqual(positions, lengths) "
            "by_length = Cast<to = 7>(kept) }",
            axis_one=np.array([1]), none=np.array(0), one=np.array(1),
        )  # fmt: skip
        for node in model.graph.node:
            node.input[:] = ["by_length" if name == "attention_mask" else name for name in node.input]
        rest = [onnx.NodeProto.FromString(node.SerializeToString()) for node in model.graph.node]
        del model.graph.node[:]
        model.graph.node.extend([*by_length.graph.node, *rest])
        model.graph.initializer.extend(by_length.graph.initializer)

    original = graphs.tiny("bert", "feature-extraction")
    text = equivalence.difference(original, changed(tmp_path, original, right_padded_only))
    assert text is not None
    assert text.startswith("last_hidden_state differs by ")
    assert text.endswith("with left-padded inputs")


def test_a_weight_that_is_a_little_off_is_caught_and_rounding_is_no_difference(tmp_path):
    def difference(change):
        def nudge(model):
            bias = next(t for t in model.graph.initializer if t.name == "bias")
            bias.CopyFrom(numpy_helper.from_array(change(numpy_helper.to_array(bias)), "bias"))

        return equivalence.difference(tmp_path / "original", changed(tmp_path, tmp_path / "original", nudge))

    graphs.write(tmp_path / "original", graphs.layers())
    assert difference(lambda bias: bias + np.float32(0.5)).startswith("y differs by ")
    assert difference(lambda bias: bias * np.float32(1 + 1e-6)) is None


def test_a_model_that_needs_longer_inputs_is_tried_with_longer_ones(tmp_path):
    node = "y = Conv<kernel_shape = [100], strides = [50]>(x, kernel)"
    model = graphs.parsed(f"(float[batch, 1, samples] x) => (float[] y) {{ {node} }}", kernel=(2, 1, 100))
    graphs.write(tmp_path / "audio", model)
    assert equivalence.difference(tmp_path / "audio", tmp_path / "audio") is None


@pytest.mark.parametrize("element", [onnx.TensorProto.STRING, onnx.TensorProto.COMPLEX64])
def test_a_model_that_cannot_be_tried_has_not_been_shown_to_agree(tmp_path, element):
    node = helper.make_node("Identity", ["x"], ["y"])
    graphs.write(tmp_path / "odd", graphs.graph([node], [("x", element, ["n"])], [("y", element, ["n"])]))
    text = equivalence.difference(tmp_path / "odd", tmp_path / "odd")
    assert text is not None
    assert text.startswith("it could not be tried on random inputs")
