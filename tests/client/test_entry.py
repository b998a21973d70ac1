"""Which model of a server a client asks, and what it takes."""

import pytest

from engine.client import entry
from engine.client.entry import Entry, Tensor
from engine.errors import UsageError

TEXT = Tensor("TEXT", "BYTES", (-1, -1))


def config(name, **more):
    inputs = [{"name": "TEXT", "data_type": "TYPE_STRING", "dims": ["-1"]}]
    return {"name": name, "max_batch_size": 8, "input": inputs, "output": []} | more


def marked(name, task, **more):
    return Entry.of_config(config(name, parameters={"recipe_task": {"string_value": task}}, **more))


def ensemble(name, *parts):
    return Entry.of_config(config(name, ensemble_scheduling={"step": [{"model_name": part} for part in parts]}))


def test_entries_are_what_says_its_task_else_ensembles_and_what_takes_texts_else_all():
    plain = Entry.of_config(config("plain", input=[{"name": "x", "data_type": "TYPE_FP32", "dims": ["3"]}]))
    tokens, texts, other = (
        Entry.of_config(config("tokens")),
        ensemble("texts", "tokens", "plain"),
        Entry("texts2", (TEXT,), ()),
    )
    assert entry.callable_ones([plain, tokens, texts, marked("e", "fill-mask")]) == [marked("e", "fill-mask")]
    assert entry.callable_ones([plain, tokens, texts, other]) == [texts, other]
    assert entry.callable_ones([plain]) == [plain]
    assert (plain.inputs[0].datatype, plain.inputs[0].shape) == ("FP32", (-1, 3))


def test_of_a_model_that_answers_whole_and_in_pieces_the_wish_chooses():
    whole = marked("gpt_text", "text-generation")
    pieces = marked("gpt_stream", "text-generation", model_transaction_policy={"decoupled": True})
    assert entry.choose([whole, pieces], None, stream=False) is whole
    assert entry.choose([whole, pieces], None, stream=True) is pieces
    assert entry.sibling([whole, pieces], whole, stream=True) is pieces
    with pytest.raises(UsageError, match="which one"):
        entry.choose([whole, pieces, marked("bert_text", "fill-mask")], None, stream=False)
    with pytest.raises(UsageError, match="no model 'gtp_text'") as told:
        entry.choose([whole, pieces], "gtp_text", stream=False)
    assert told.value.hint == "did you mean gpt_text?"
