"""The choice of a model on a server, and the model's inputs."""

import pytest

from engine.client import model_metadata
from engine.client.model_metadata import ModelMetadata, TensorMetadata
from engine.errors import UsageError

TEXT = TensorMetadata("TEXT", "BYTES", (-1, -1))


def config(name, **more):
    inputs = [{"name": "TEXT", "data_type": "TYPE_STRING", "dims": ["-1"]}]
    return {"name": name, "max_batch_size": 8, "input": inputs, "output": []} | more


def marked(name, task, **more):
    return ModelMetadata.of_config(config(name, parameters={"recipe_task": {"string_value": task}}, **more))


def ensemble(name, *parts):
    return ModelMetadata.of_config(config(name, ensemble_scheduling={"step": [{"model_name": part} for part in parts]}))


def test_entries_are_what_says_its_task_else_ensembles_and_what_takes_texts_else_all():
    plain = ModelMetadata.of_config(config("plain", input=[{"name": "x", "data_type": "TYPE_FP32", "dims": ["3"]}]))
    tokens, texts = ModelMetadata.of_config(config("tokens")), ensemble("texts", "tokens", "plain")
    other = ModelMetadata("texts2", (TEXT,), ())
    assert model_metadata.entries([plain, tokens, texts, marked("e", "fill-mask")]) == [marked("e", "fill-mask")]
    assert model_metadata.entries([plain, tokens, texts, other]) == [texts, other]
    assert model_metadata.entries([plain]) == [plain]
    assert (plain.inputs[0].datatype, plain.inputs[0].shape) == ("FP32", (-1, 3))


def test_of_a_model_that_answers_whole_and_in_pieces_the_wish_chooses():
    whole = marked("gpt_text", "text-generation")
    pieces = marked("gpt_stream", "text-generation", model_transaction_policy={"decoupled": True})
    assert model_metadata.choose([whole, pieces], None, stream=False) is whole
    assert model_metadata.choose([whole, pieces], None, stream=True) is pieces
    assert model_metadata.sibling([whole, pieces], whole, stream=True) is pieces
    with pytest.raises(UsageError, match="which one"):
        model_metadata.choose([whole, pieces, marked("bert_text", "fill-mask")], None, stream=False)
    with pytest.raises(UsageError, match="no model 'gtp_text'") as caught:
        model_metadata.choose([whole, pieces], "gtp_text", stream=False)
    assert caught.value.hint == "did you mean gpt_text?"
