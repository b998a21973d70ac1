"""Passes change one model in order, and an error says which pass failed and which passes ran before it."""

import graphs
import pytest

from engine.errors import StepError
from engine.kit.onnx import ir_models
from engine.kit.onnx.names import name_nodes
from engine.kit.onnx.passes import linear_layers
from engine.kit.onnx.passes.pipeline import Pipeline


def broken(model, *, by):
    raise by


def test_passes_change_one_model_in_order_and_return_what_they_return():
    passes = Pipeline(ir_models.of(graphs.layers()))
    passes.run(linear_layers.split)
    passes.run(name_nodes, with_output=True)
    assert [node.op_type for node in passes.model.graph] == ["MatMul", "Add", "Relu", "MatMul"]
    assert passes.passes == ["linear_layers.split", "names.name_nodes"]
    assert passes.run(lambda model: model.graph.name) == "graph"


def test_an_error_names_the_pass_and_the_passes_before_it():
    passes = Pipeline(ir_models.of(graphs.layers()))
    passes.run(linear_layers.split)
    with pytest.raises(StepError) as caught:
        passes.run(broken, by=KeyError("no such tensor"))
    assert caught.value.what == "The graph of the model could not be changed"
    assert "no such tensor" in caught.value.facts[0]
    assert list(caught.value.facts[-2:]) == [
        "in the pass test_pipeline.broken",
        "passes before it: linear_layers.split",
    ]


def test_an_error_of_a_pass_keeps_its_text_and_its_hint():
    with pytest.raises(StepError) as caught:
        Pipeline(ir_models.of(graphs.layers())).run(broken, by=StepError("too small", ["of 3"], "take more"))
    assert (caught.value.what, caught.value.hint) == ("too small", "take more")
    assert list(caught.value.facts) == ["of 3", "in the pass test_pipeline.broken", "passes before it: none"]


def test_a_tool_takes_the_model_as_a_message_and_is_a_pass_as_well():
    def renamed(message):
        message.graph.name = "changed"
        return message

    passes = Pipeline(ir_models.of(graphs.layers()))
    passes.run_tool("a tool", renamed)
    assert passes.model.graph.name == "changed"
    assert passes.passes == ["a tool"]
