"""Models with an encoder and a decoder that classify: right alone and in batches, whatever a batch holds."""

import json

import models
import numpy as np
import own_inputs
import pytest
import transformers

from engine.errors import StepError
from engine.kit.checkpoints import checkpoint as checkpoints
from engine.kit.inputs import cases, token_rows
from engine.kit.inputs import tokenizer as tokenizers
from engine.kit.onnx.onnx_files import Input
from engine.runtimes.onnxruntime import session as ort
from engine.steps.export import Export
from engine.steps.reference import Reference

FAMILIES = {
    "bart": "BartForSequenceClassification",
    "mbart": "MBartForSequenceClassification",
    "plbart": "PLBartForSequenceClassification",
    "mvp": "MvpForSequenceClassification",
    "t5": "T5ForSequenceClassification",
    "mt5": "MT5ForSequenceClassification",
    "umt5": "UMT5ForSequenceClassification",
}
SIZES = {
    "d_model": 32, "encoder_layers": 2, "decoder_layers": 2, "encoder_attention_heads": 4, "decoder_attention_heads": 4,
    "encoder_ffn_dim": 64, "decoder_ffn_dim": 64, "max_position_embeddings": 64,
}  # fmt: skip
INTEGERS = Input("", "int64", ("batch", "sequence"))
SIZES_OF_T5 = {"d_model": 32, "d_kv": 8, "d_ff": 64, "num_layers": 2, "num_heads": 4}


def checkpoint(directory, family, architecture):
    """Save a tiny random model of three classes, and a tokenizer that ends each text with </s>."""
    import torch

    models.save_tokenizer(directory, "roberta")
    words = models.vocabulary("roberta")
    sizes = SIZES_OF_T5 if family.endswith("t5") else SIZES
    torch.manual_seed(1)
    config = transformers.AutoConfig.for_model(
        family, vocab_size=len(words), num_labels=3, pad_token_id=words["<pad>"], bos_token_id=words["<s>"],
        eos_token_id=words["</s>"], decoder_start_token_id=words["</s>"], **sizes,
    )  # fmt: skip
    model = getattr(transformers, architecture)(config)
    models.sharpen(model)
    model.save_pretrained(directory)
    return directory


OTHERS = [pytest.param(name, marks=pytest.mark.whole) for name in FAMILIES if name != "bart"]


@pytest.mark.parametrize("family", ["bart", *OTHERS])
def test_a_classifier_with_a_decoder_answers_as_its_users_see_alone_and_among_others(family, tmp_path):
    directory = checkpoint(tmp_path / "checkpoint", family, FAMILIES[family])
    report = Export().run(tmp_path / "exported", checkpoint=directory)
    assert (report.task, report.inputs) == ("text-classification", ("input_ids", "attention_mask"))
    texts = [(text,) for text in own_inputs.TEXTS] + list(own_inputs.PAIRS)
    samples = tmp_path / "samples.jsonl"
    lines = [dict(zip(("text", "pair"), text, strict=False)) for text in texts]
    samples.write_text("\n".join(map(json.dumps, lines)))
    Reference().run(tmp_path / "reference", checkpoint=directory, samples=samples)
    expected = own_inputs.users_logits(directory, texts)
    session = ort.session(tmp_path / "exported", threads=1)
    alone = [case for case in cases.load(tmp_path / "reference") if case.kind == "sample"]
    for case, logits in zip(alone, expected, strict=True):
        close(case.outputs["logits"], logits)
        close(ort.run(session, case.inputs)["logits"], logits)
    # A text has one end token and a pair has three: transformers refuses such a batch, and the package answers it.
    tokenizer = tokenizers.load(directory)
    rows = [tokenizer.row(*text) for text in texts]
    together = token_rows.fit(token_rows.batch(rows, pad=tokenizer.pad), dict.fromkeys(report.inputs, INTEGERS))
    close(ort.run(session, together)["logits"], np.concatenate(expected))


def close(actual, expected):
    np.testing.assert_allclose(actual, expected, rtol=1e-3, atol=1e-3)


@pytest.mark.parametrize(
    ("family", "architecture", "task"),
    [
        pytest.param("bart", "BartForQuestionAnswering", "question-answering", marks=pytest.mark.whole),
        ("t5", "T5ForTokenClassification", "token-classification"),
    ],
)
def test_spans_and_classes_of_tokens_are_exported_too(family, architecture, task, tmp_path):
    directory = checkpoint(tmp_path / "checkpoint", family, architecture)
    report = Export().run(tmp_path / "exported", checkpoint=directory)
    assert (report.task, report.inputs) == (task, ("input_ids", "attention_mask"))


def test_a_classifier_is_not_packaged_as_a_model_that_writes_and_the_hint_works(tmp_path):
    directory = checkpoint(tmp_path, "bart", FAMILIES["bart"])
    with pytest.raises(StepError) as caught:
        checkpoints.task(directory, "text2text-generation")
    assert caught.value.what == (
        "the model was made for text-classification: it has no head that was trained for text2text-generation"
    )
    assert caught.value.hint == "say `task: text-classification` under `model:`"
    assert checkpoints.task(directory, "text-classification") == checkpoints.task(directory, None)
