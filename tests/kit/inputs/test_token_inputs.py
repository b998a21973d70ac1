"""Inputs that a tokenizer fills, whatever an exporter called them."""

import heads
import onnx
import pytest

from engine.errors import StepError
from engine.kit.inputs import token_inputs
from engine.kit.onnx import onnx_files


def model(folder, **options):
    return onnx.load(heads.onnx_file(folder / "net.onnx", **options))


def test_the_use_of_an_input_tells_its_name(tmp_path):
    graph = model(tmp_path, names=["a", "b", "c"], types=True)
    usual = {"a": "input_ids", "b": "attention_mask", "c": "token_type_ids"}
    assert token_inputs.renamed(graph) == usual
    assert list(onnx_files.inputs(token_inputs.standardized(graph))) == list(usual.values())
    onnx.checker.check_model(graph, full_check=True)


def test_usual_names_stay(tmp_path):
    assert token_inputs.renamed(model(tmp_path, types=True)) == {}


@pytest.mark.parametrize("name", ["words", "visible"])
def test_a_name_that_only_one_input_lacks_is_told_by_its_use(tmp_path, name):
    place = ["words", "visible"].index(name)
    names = ["input_ids", "attention_mask"]
    usual, names[place] = names[place], name
    assert token_inputs.renamed(model(tmp_path, names=names)) == {name: usual}


def test_what_is_not_clear_is_refused(tmp_path):
    with pytest.raises(StepError, match="not those that a tokenizer fills"):
        token_inputs.renamed(model(tmp_path, vocabulary=9, names=["a", "b", "c"], types=True))


def test_the_only_table_is_the_vocabulary_however_small(tmp_path):
    assert token_inputs.renamed(model(tmp_path, vocabulary=9, names=["a", "attention_mask"])) == {"a": "input_ids"}
