"""The parts of a package around its model, joined by the tensors' names."""

import pytest
from text_config import model
from tritonclient.grpc import model_config_pb2

from engine.errors import StepError
from engine.kit.triton import parts
from engine.machine import tools
from engine.tasks import AnswerTensor

ROW = AnswerTensor("TEXT", "TYPE_STRING", (1,))


def around(config, *, texts=ROW):
    """The tokenizer of a model, and the ensemble of both."""
    own = parts.tensors(config.input, config)
    tokenizer = parts.python("m_tokenizer", config, takes=[texts], gives=own, work="tokenizer.py", settings={})
    chain = [tokenizer, parts.Part(config)]
    given = [tensor.name for tensor in config.output]
    return tokenizer.config, parts.ensemble("m_text", chain, takes=[texts], gives=given, task="fill-mask").config


def test_the_ensemble_joins_tokenizer_and_model_by_the_tensors_names():
    tokenizer, ensemble = around(model())
    assert [step.model_name for step in ensemble.ensemble_scheduling.step] == ["m_tokenizer", "m"]
    assert dict(ensemble.ensemble_scheduling.step[1].input_map) == {
        "input_ids": "input_ids",
        "attention_mask": "attention_mask",
    }
    assert list(ensemble.input[0].dims) == [1]
    assert ensemble.input[0].data_type == model_config_pb2.TYPE_STRING
    assert [tensor.name for tensor in ensemble.output] == ["last_hidden_state"]
    assert ensemble.max_batch_size == tokenizer.max_batch_size == 8
    assert ensemble.parameters["recipe_task"].string_value == "fill-mask"
    assert "recipe_task" not in tokenizer.parameters


def test_without_batches_a_row_of_texts_is_a_dimension_of_its_own():
    tokenizer, ensemble = around(model(batch=0), texts=AnswerTensor("TEXT", "TYPE_STRING", (2,)))
    assert list(tokenizer.input[0].dims) == list(ensemble.input[0].dims) == [-1, 2]
    assert list(tokenizer.output[0].dims) == [-1, -1]


def test_the_recipe_s_own_word_for_what_a_model_is_for_stands():
    config = model()
    parts.mark(config, "tensors")
    parts.mark(config, "fill-mask")
    assert config.parameters["recipe_task"].string_value == "tensors"


def test_requirements_have_the_version_of_the_distribution_that_is_installed(monkeypatch):
    """With the extra `gpu`, onnxruntime-gpu is installed, and a server without a GPU needs onnxruntime."""
    monkeypatch.setattr(tools, "_versions", {})
    monkeypatch.setattr(tools, "_described", lambda name: [Installed()] if name == "onnxruntime-gpu" else [])
    part = parts.python("m_all", model(), takes=[ROW], gives=[], work="fused.py", settings={}, needs=("onnxruntime",))
    assert b"\nonnxruntime==9.9\n" in part.beside[parts.REQUIREMENTS]
    with pytest.raises(StepError, match="tokenizers is not installed, so"):
        parts.python("m_all", model(), takes=[ROW], gives=[], work="fused.py", settings={}, needs=("tokenizers",))


class Installed:
    """A distribution as importlib.metadata describes it."""

    version = "9.9"
