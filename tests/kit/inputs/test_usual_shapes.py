"""The shape that is measured where a recipe states neither shapes nor profiles."""

import json

import graphs
import models
import pytest

from engine.kit.inputs import usual_shapes
from engine.kit.onnx import onnx_files


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
    sizes = usual_shapes.measured(text, checkpoint(positions), new_tokens=None)
    assert sizes == {"batch": 1, "sequence": tokens}


def test_a_prompt_leaves_room_for_the_new_tokens(text, checkpoint):
    sizes = usual_shapes.measured(text, checkpoint(48), new_tokens=5)
    assert sizes == {"batch": 1, "sequence": 43}


def test_the_axes_of_an_onnx_file_have_no_usual_sizes(text, tmp_path):
    graphs.write(tmp_path / "file", graphs.layers())
    assert usual_shapes.measured(text, None, new_tokens=None) == {}
    assert usual_shapes.measured(text, tmp_path / "file", new_tokens=None) == {}
