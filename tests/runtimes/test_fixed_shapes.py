"""The facts of a model's fixed shapes: which axes can be padded, and with what."""

import graphs
import pytest

from engine.kit.inputs import tokenizer as tokenizers
from engine.kit.onnx import onnx_files
from engine.recipe.values import Range
from engine.runtimes import fixed_shapes

LOGITS = {"logits": ["batch", None]}


def profile(**extents):
    return {axis: Range.model_validate(extent) for axis, extent in extents.items()}


def facts(*profiles, folder=None, tokenizer=None, known=LOGITS):
    inputs = onnx_files.inputs(onnx_files.load_graph(folder or graphs.tiny("bert")))
    return fixed_shapes.routing(
        inputs, profiles, tokenizer, outputs=["logits"], axes_of_outputs=lambda rows, tokens: known
    )


@pytest.mark.parametrize("architecture", ["bert", "roberta"])
def test_a_text_model_is_padded_as_its_tokenizer_pads(architecture):
    exported = graphs.tiny(architecture)
    tokenizer = tokenizers.load(exported.parent / "checkpoint")
    profiles = (profile(batch=1, sequence=8), profile(batch=[1, 2, 4], sequence=8))
    one = facts(*profiles, folder=exported, tokenizer=tokenizer)
    assert one["fixed"] == [{"batch": 1, "sequence": 8}]
    assert (one["free"], one["rows"], one["tokens"], one["left"]) == (True, "batch", "sequence", False)
    assert one["fill"]["input_ids"] == tokenizer.pad
    assert one["outputs"]["logits"] == ["batch", None]


def test_tokens_are_padded_by_a_tokenizer_alone_and_nothing_where_an_output_has_unknown_axes():
    one = facts(profile(batch=1, sequence=8))
    assert (one["rows"], one["tokens"]) == ("batch", None)
    one = facts(profile(batch=1, sequence=8), known=None)
    assert (one["rows"], one["tokens"], one["outputs"]) == (None, None, {"logits": []})
    assert facts(profile(batch=[1, 2, 4], sequence=[1, 8, 16])) is None, "ranges alone need no fixed shapes"
