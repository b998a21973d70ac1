import json

import graphs
import models
import numpy as np
import pytest
from onnx import helper

from engine.errors import StepError
from engine.kit.inputs import bench_inputs
from engine.kit.onnx import onnx_files


def text_model():
    taken = [(name, graphs.INT64, ["batch", "sequence"]) for name in ("input_ids", "attention_mask")]
    nodes = [helper.make_node("Gather", ["words", "input_ids"], ["states"])]
    return graphs.graph(
        nodes, taken, [("states", graphs.FLOAT, ["batch", "sequence", 4])], [graphs.weight("words", 30, 4)]
    )


def test_tokens_have_exactly_the_shape_with_nothing_masked_and_ids_that_the_table_has():
    inputs = bench_inputs.draw(text_model(), {"batch": 3, "sequence": 17})
    assert {name: array.shape for name, array in inputs.items()} == {"input_ids": (3, 17), "attention_mask": (3, 17)}
    assert inputs["attention_mask"].min() == 1
    assert inputs["input_ids"].max() < 30
    assert len(np.unique(inputs["input_ids"])) > 10


def test_other_tensors_have_the_shape_that_is_asked_for():
    inputs = bench_inputs.draw(graphs.convolutions(), {"batch": 2})
    assert inputs["images"].shape == (2, 3, 16, 16)
    inputs = bench_inputs.draw(graphs.recurrent(), {"time": 7, "batch": 2})
    assert inputs["x"].shape == (7, 2, 32)


def test_a_large_batch_of_images_is_drawn_too():
    """32 images of 384 x 384 are more than a profile's far end is validated with."""
    shape = ["batch", 384, 384, 3]
    node = helper.make_node("Identity", ["images"], ["same"])
    model = graphs.graph([node], [("images", graphs.FLOAT, shape)], [("same", graphs.FLOAT, shape)])
    assert bench_inputs.draw(model, {"batch": 32})["images"].shape == (32, 384, 384, 3)


def test_an_axis_that_the_model_lacks_is_named_with_the_axes_that_it_has():
    with pytest.raises(StepError, match="does not have: length") as caught:
        bench_inputs.draw(text_model(), {"batch": 1, "sequence": 8, "length": 8})
    assert "input_ids: batch x sequence" in str(caught.value)
    assert "batch: 1, sequence: 8" in caught.value.hint


def test_an_axis_without_an_extent_is_named():
    with pytest.raises(StepError, match="leave open how long sequence is"):
        bench_inputs.draw(text_model(), {"batch": 1})


def test_rows_have_their_full_length():
    taken = [("states", graphs.FLOAT, ["batch", "time", 4]), ("lengths", graphs.INT64, ["batch"])]
    nodes = [helper.make_node("Identity", ["states"], ["same"])]
    model = graphs.graph(nodes, taken, [("same", graphs.FLOAT, ["batch", "time", 4])], [])
    assert bench_inputs.draw(model, {"batch": 3, "time": 9})["lengths"].tolist() == [9, 9, 9]


@pytest.fixture
def text(tmp_path):
    return onnx_files.load_graph(models.classifier_with_tokenizer(tmp_path / "text"))


@pytest.fixture
def checkpoint(tmp_path):
    """Let a test choose the number of positions of a checkpoint."""

    def of(positions):
        (tmp_path / "config.json").write_text(json.dumps({"model_type": "bert", "max_position_embeddings": positions}))
        return tmp_path

    return of


@pytest.mark.parametrize(("positions", "tokens"), [(512, 128), (64, 64)])
def test_a_text_model_gets_one_row_of_a_usual_length(text, checkpoint, positions, tokens):
    sizes = bench_inputs.usual_shape(text, checkpoint(positions), new_tokens=None)
    assert sizes == {"batch": 1, "sequence": tokens}


def test_a_prompt_leaves_room_for_the_new_tokens(text, checkpoint):
    sizes = bench_inputs.usual_shape(text, checkpoint(48), new_tokens=5)
    assert sizes == {"batch": 1, "sequence": 43}


def test_the_axes_of_an_onnx_file_have_no_usual_sizes(text, tmp_path):
    graphs.write(tmp_path / "file", graphs.layers())
    assert bench_inputs.usual_shape(text, None, new_tokens=None) == {}
    assert bench_inputs.usual_shape(text, tmp_path / "file", new_tokens=None) == {}
