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


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({"types": True}, {}),
        ({"names": ["words", "attention_mask"]}, {"words": "input_ids"}),
        ({"names": ["input_ids", "visible"]}, {"visible": "attention_mask"}),
        ({"names": ["a", "attention_mask"], "vocabulary": 9}, {"a": "input_ids"}),
    ],
    ids=["usual names stay", "ids", "mask", "the only table is the vocabulary"],
)
def test_only_names_that_are_not_usual_are_told_by_their_use(tmp_path, options, expected):
    assert token_inputs.renamed(model(tmp_path, **options)) == expected


def test_what_is_not_clear_is_refused(tmp_path):
    with pytest.raises(StepError, match="not those that a tokenizer fills"):
        token_inputs.renamed(model(tmp_path, vocabulary=9, names=["a", "b", "c"], types=True))
