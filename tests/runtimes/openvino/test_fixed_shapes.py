"""The facts of a model's fixed shapes: which axes can be padded, and what cannot be known."""

import graphs
import models
import openvino_here  # noqa: F401 - skips where OpenVINO is missing
import pytest

from engine.kit.inputs import tokenizer as tokenizers
from engine.kit.onnx import onnx_files
from engine.recipe.values import Range
from engine.runtimes.openvino import fixed_shapes, ir


def profile(**extents):
    return {axis: Range.model_validate(extent) for axis, extent in extents.items()}


def facts(folder, *profiles, tokenizer=None):
    model = ir.read(folder / onnx_files.MODEL)
    return fixed_shapes.routing(model, onnx_files.inputs(onnx_files.load_graph(folder)), profiles, tokenizer)


@pytest.mark.parametrize(("left", "architecture"), [(False, "bert"), (False, "roberta")])
def test_a_text_model_is_padded_as_its_tokenizer_pads(left, architecture):
    exported = graphs.tiny(architecture)
    tokenizer = tokenizers.load(exported.parent / "checkpoint")
    one = facts(exported, profile(batch=1, sequence=8), profile(batch=[1, 2, 4], sequence=8), tokenizer=tokenizer)
    assert one["fixed"] == [{"batch": 1, "sequence": 8}]
    assert (one["free"], one["rows"], one["tokens"], one["left"]) == (True, "batch", "sequence", left)
    assert one["fill"]["input_ids"] == tokenizer.pad
    assert one["outputs"]["logits"] == ["batch", None]


def test_ranges_alone_need_no_fixed_shapes():
    assert facts(graphs.tiny("bert"), profile(batch=[1, 2, 4], sequence=[1, 8, 16])) is None


def test_without_a_tokenizer_tokens_are_not_padded():
    one = facts(graphs.tiny("bert"), profile(batch=1, sequence=8))
    assert (one["rows"], one["tokens"]) == (None, None)


def test_an_axis_that_follows_from_the_input_in_another_way_is_not_cropped(tmp_path):
    models.onnx_audio(tmp_path / "model.onnx")
    one = facts(tmp_path, profile(batch=1, samples=400))
    assert (one["rows"], one["tokens"]) == (None, None)
