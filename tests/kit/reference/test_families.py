"""A task that a family of models cannot do is explained before a weight is read."""

import json

import generators
import numpy as np
import pytest
import transformers

from engine.errors import StepError
from engine.kit.generation import modules
from engine.kit.onnx.onnx_files import Input
from engine.kit.reference import torch_models
from engine.steps.export import Export

TEXT = {"vocab_size": 60, "hidden_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 32}


@pytest.mark.parametrize(
    ("family", "architecture", "task", "explanation"),
    [
        ("bert", "BertForMaskedLM", "text-generation", ("bert reads a text as a whole", "GPT-2, OPT or Llama")),
        ("bert", "BertForMaskedLM", "text2text-generation", ("bert has no encoder", "T5 or BART")),
        ("gpt2", "GPT2LMHeadModel", "text2text-generation", ("gpt2 has no encoder", "task: text-generation")),
        ("t5", "T5ForConditionalGeneration", "text-generation", ("t5 has an encoder and a decoder", "text2text")),
        ("bart", "BartForConditionalGeneration", "feature-extraction", ("bart has an encoder and", "text2text")),
        ("gpt2", "GPT2LMHeadModel", "fill-mask", ("transformers has no gpt2 for fill-mask", "another task")),
    ],
)
def test_a_task_that_a_family_cannot_do_is_explained(tmp_path, family, architecture, task, explanation):
    config = {"model_type": family, "architectures": [architecture], "is_encoder_decoder": family in ("t5", "bart")}
    (tmp_path / "config.json").write_text(json.dumps(config))
    with pytest.raises(StepError) as caught:
        torch_models.load(tmp_path, task)
    assert explanation[0] in caught.value.what
    assert caught.value.facts == (f"config.json has architectures: {architecture}",)
    assert explanation[1] in caught.value.hint


def test_a_bert_that_was_trained_as_a_decoder_continues_texts(tmp_path):
    config = transformers.BertConfig(**TEXT, is_decoder=True)
    transformers.BertLMHeadModel(config).save_pretrained(tmp_path)
    assert torch_models.load(tmp_path, "text-generation").output_names == ("logits",)


def test_a_decoder_that_classifies_needs_to_know_its_padding(tmp_path):
    config = transformers.GPT2Config(vocab_size=60, n_embd=16, n_layer=1, n_head=2, n_positions=32, num_labels=3)
    transformers.GPT2ForSequenceClassification(config).save_pretrained(tmp_path)
    with pytest.raises(StepError, match="classifies a text by its last token") as caught:
        torch_models.load(tmp_path, "text-classification")
    assert "pad_token_id" in caught.value.hint


@pytest.mark.parametrize(
    ("kind", "options"),
    [
        pytest.param("GPT2", {"n_embd": 16, "n_layer": 1, "n_head": 2, "n_positions": 64},
                     marks=pytest.mark.whole("the case OPT")),
        ("OPT", {"hidden_size": 16, "word_embed_proj_dim": 16, "ffn_dim": 32, "num_hidden_layers": 1,
                 "num_attention_heads": 2, "max_position_embeddings": 64}),
    ],
)  # fmt: skip
def test_decoders_classify_by_their_last_token(tmp_path, kind, options):
    """Export itself holds the graph against the original: padded on either side, and with holes."""
    config = getattr(transformers, f"{kind}Config")(vocab_size=60, pad_token_id=1, num_labels=3, **options)
    getattr(transformers, f"{kind}ForSequenceClassification")(config).save_pretrained(tmp_path / "checkpoint")
    report = Export().run(tmp_path / "exported", checkpoint=tmp_path / "checkpoint")
    assert (report.task, report.outputs) == ("text-classification", ("logits",))
    assert list(report.inputs) == ["input_ids", "attention_mask"]


def test_a_decoder_without_a_classifier_gets_a_random_one_where_the_recipe_says_so(tmp_path):
    generators.checkpoint(tmp_path, "opt")
    with pytest.raises(StepError, match="the checkpoint has no head for text-classification"):
        torch_models.load(tmp_path, "text-classification")
    loaded = [torch_models.load(tmp_path, "text-classification", num_labels=3, random_head=True) for _ in range(2)]
    ids = np.array([[5, 6, 7], [8, 9, 1]])
    first, second = (torch_models.call(module, {"input_ids": ids, "attention_mask": ids * 0 + 1}) for module in loaded)
    assert first["logits"].shape == (2, 3)
    np.testing.assert_array_equal(first["logits"], second["logits"])


def test_a_model_without_the_output_of_the_task_names_its_outputs():
    model = transformers.BertForMaskedLM(transformers.BertConfig(**TEXT))
    specs = {"input_ids": Input("input_ids", "int64", ("batch", "sequence"))}
    module = modules.by_position(model, lambda model, tensors: model(**tensors), specs, ("last_hidden_state",))
    with pytest.raises(StepError, match="BertForMaskedLM does not give last_hidden_state") as caught:
        torch_models.call(module, {"input_ids": np.ones((1, 3), np.int64)})
    assert caught.value.facts == ("it gives: logits",)
