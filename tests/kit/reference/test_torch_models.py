"""Checkpoints as modules: what is missing is explained, never silently made up."""

from __future__ import annotations

import shutil

import heads
import models
import numpy as np
import pytest
import torch
import transformers
from safetensors.torch import load_file, save_file

from engine.errors import StepError
from engine.kit.reference import torch_models


@pytest.fixture(scope="module")
def bare(tmp_path_factory):
    """A BERT without any head."""
    return models.checkpoint(tmp_path_factory.mktemp("bare"), "bert", tokenizer=False)


@pytest.fixture(scope="module")
def classifier(tmp_path_factory):
    """A DistilBERT with a head of two classes, in half precision."""
    directory = models.checkpoint(
        tmp_path_factory.mktemp("classifier"), "distilbert", task="text-classification", tokenizer=False
    )
    weights = {name: weight.half() for name, weight in load_file(directory / "model.safetensors").items()}
    save_file(weights, directory / "model.safetensors", {"format": "pt"})
    return directory


def tokens(*shape):
    ids = np.random.default_rng(0).integers(5, 40, shape)
    return {"input_ids": ids, "attention_mask": np.ones_like(ids), "token_type_ids": np.zeros_like(ids)}


def refusal(*arguments, **options):
    with pytest.raises(StepError) as caught:
        torch_models.load(*arguments, **options)
    return str(caught.value)


def without(directory, tmp_path, *names):
    """Return a copy of the checkpoint that lacks the weights that begin so."""
    copy = shutil.copytree(directory, tmp_path / "without")
    weights = load_file(copy / "model.safetensors")
    kept = {name: weight for name, weight in weights.items() if not name.startswith(names)}
    assert len(kept) < len(weights)
    save_file(kept, copy / "model.safetensors", {"format": "pt"})
    return copy


@pytest.mark.parametrize(
    ("task", "outputs"),
    [
        ("feature-extraction", {"last_hidden_state": (2, 7, 32)}),
        ("text-classification", {"logits": (2, 3)}),
        ("token-classification", {"logits": (2, 7, 3)}),
        ("question-answering", {"start_logits": (2, 7), "end_logits": (2, 7)}),
        ("fill-mask", {"logits": (2, 7, len(models.vocabulary()))}),
    ],
)
def test_each_task_has_its_named_outputs(bare, task, outputs):
    labels = 3 if "classification" in task else None
    module = torch_models.load(bare, task, num_labels=labels, random_head=True)
    answers = torch_models.call(module, tokens(2, 7))
    assert {name: answer.shape for name, answer in answers.items()} == outputs
    assert not module.training


@pytest.mark.parametrize(
    ("architecture", "takes"),
    [("bert", True), ("electra", True), ("albert", True), ("roberta", False), ("xlm-roberta", False),
     ("distilbert", False), ("mpnet", False), ("deberta-v2", False)],
)  # fmt: skip
def test_token_types_are_an_input_only_where_they_tell_something_apart(architecture, takes, tmp_path):
    module = torch_models.load(models.checkpoint(tmp_path, architecture, tokenizer=False), "feature-extraction")
    assert ("token_type_ids" in module.input_names) == takes


def test_half_precision_weights_are_computed_in_single(classifier):
    module = torch_models.load(classifier, "text-classification")
    assert {weight.dtype for weight in module.parameters()} == {torch.float32}
    assert torch_models.call(module, tokens(1, 5))["logits"].dtype == np.float32


def test_a_head_that_is_there_is_used_as_it_is(classifier, capsys):
    module = torch_models.load(classifier, "text-classification")
    saved = load_file(classifier / "model.safetensors")["classifier.weight"]
    assert torch.equal(dict(module.named_parameters())["model.classifier.weight"], saved.float())
    assert capsys.readouterr().out == ""


def test_a_random_head_is_the_same_each_time_and_leaves_the_generator_alone(bare, capsys):
    torch.manual_seed(5)
    expected = torch.rand(1)
    torch.manual_seed(5)
    heads = [torch_models.load(bare, "text-classification", num_labels=4, random_head=True) for _ in range(2)]
    assert torch.rand(1) == expected
    first, second = (dict(head.named_parameters())["model.classifier.weight"] for head in heads)
    assert first.shape == (4, 32)
    assert first.abs().sum() > 0
    assert torch.equal(first, second)
    assert "the head is random, as the recipe asks: classifier.bias, classifier.weight\n" in capsys.readouterr().out


@pytest.mark.parametrize("options", [{}, {"num_labels": 2}, {"random_head": True}])
def test_a_missing_head_is_an_error_unless_the_recipe_asks_for_a_random_one(bare, options):
    assert refusal(bare, "text-classification", **options) == (
        "the checkpoint has no head for text-classification\n"
        "  missing: classifier.bias\n"
        "  missing: classifier.weight\n"
        "hint: choose a checkpoint made for text-classification, or allow a random head with "
        "num_labels and random_head: true under model:"
    )


def test_a_task_without_labels_only_asks_for_a_random_head(bare):
    text = refusal(bare, "question-answering")
    assert text.startswith("the checkpoint has no head for question-answering\n  missing: qa_outputs.bias\n")
    assert text.endswith("or allow a random head with random_head: true under model:")


def test_a_head_of_another_size_shows_both(classifier):
    assert refusal(classifier, "text-classification", num_labels=5).startswith(
        "the checkpoint's head does not fit num_labels: 5\n"
        "  classifier.bias: [2] in the weights, [5] by the config\n"
        "  classifier.weight: [2, 32] in the weights, [5, 32] by the config\n"
    )
    module = torch_models.load(classifier, "text-classification", num_labels=5, random_head=True)
    assert torch_models.call(module, tokens(1, 5))["logits"].shape == (1, 5)


def test_a_head_of_another_size_than_the_labels_of_the_config_is_a_fault_of_the_config(classifier, tmp_path):
    folder = heads.copied(classifier, tmp_path)
    heads.edit(folder / "config.json", id2label={"0": "a", "1": "b", "2": "c"})
    error = refusal(folder, "text-classification")
    assert error.startswith("the checkpoint's head does not fit its config.json\n  classifier.bias: [2] in the weights")
    assert "`id2label`" in error


def test_a_missing_weight_of_the_body_is_an_error_even_with_a_random_head(bare, tmp_path):
    broken = without(bare, tmp_path, "encoder.layer.1.attention.self.query")
    text = refusal(broken, "text-classification", num_labels=2, random_head=True)
    assert text == (
        "the checkpoint's weights do not make a BertForSequenceClassification\n"
        "  missing: bert.encoder.layer.1.attention.self.query.bias\n"
        "  missing: bert.encoder.layer.1.attention.self.query.weight\n"
        "hint: do config.json and the safetensors belong together?"
    )
    assert "missing: encoder.layer.1" in refusal(broken, "feature-extraction")


def test_a_body_of_another_size_is_an_error(bare, tmp_path):
    copy = heads.copied(bare, tmp_path)
    heads.edit(copy / "config.json", intermediate_size=48)
    text = refusal(copy, "feature-extraction")
    assert text.startswith("the checkpoint's weights do not make a BertModel\n")
    assert "encoder.layer.0.intermediate.dense.weight: [64, 32] in the weights, [48, 32] by the config" in text


def test_a_missing_pooler_matters_only_where_a_head_stands_on_it(bare, tmp_path):
    without_pooler = without(bare, tmp_path, "pooler")
    torch_models.load(without_pooler, "feature-extraction")
    assert "  missing: pooler.dense.bias" in refusal(without_pooler, "text-classification").replace("bert.", "")


def test_weights_that_the_task_does_not_need_are_mentioned(classifier, capsys):
    torch_models.load(classifier, "feature-extraction")
    assert capsys.readouterr().out == (
        "4 weights of the checkpoint are not needed for feature-extraction: classifier.bias, ...\n"
    )


def test_a_checkpoint_that_cannot_be_read_says_why_without_its_path(bare, tmp_path):
    copy = shutil.copytree(bare, tmp_path / "copy")
    (copy / "model.safetensors").write_bytes(b"cut off")
    text = refusal(copy, "feature-extraction")
    assert text.startswith("the checkpoint cannot be loaded for feature-extraction\n  ")
    assert str(tmp_path) not in text
    (copy / "model.safetensors").unlink()
    assert "model.safetensors" in refusal(copy, "feature-extraction")


def test_what_is_not_supported_yet_says_so(bare, tmp_path):
    assert refusal(bare, "depth-estimation").startswith("depth-estimation is not supported yet for a PyTorch model")
    (tmp_path / "config.json").write_text('{"architecture": "resnet18"}')
    assert refusal(tmp_path, "feature-extraction") == (
        "the checkpoint is one of timm, and the recipe does not say so\n"
        "  config.json is timm's, architecture resnet18\n"
        "hint: say `library: timm` under `model:`"
    )
    (tmp_path / "config.json").write_text('{"model_type": "t5", "architectures": ["T5Model"]}')
    assert refusal(tmp_path, "feature-extraction").startswith("t5 has an encoder and a decoder: that is not supported")


def test_inputs_that_are_missing_are_listed(bare):
    module = torch_models.load(bare, "feature-extraction")
    with pytest.raises(StepError) as caught:
        torch_models.call(module, {"input_ids": np.zeros((1, 3), "int64")})
    assert str(caught.value) == (
        "the model takes input_ids, attention_mask, token_type_ids\n  missing: attention_mask, token_type_ids"
    )


def test_an_encoder_alone_of_a_family_with_decoders_is_loaded_as_what_it_is(tmp_path):
    config = transformers.T5Config(vocab_size=50, d_model=16, d_kv=4, d_ff=32, num_layers=2, num_heads=4)
    transformers.T5EncoderModel(config).save_pretrained(tmp_path)
    module = torch_models.load(tmp_path, "feature-extraction")
    assert type(module.model).__name__ == "T5EncoderModel"
    assert module.input_names == ("input_ids", "attention_mask")
    ids = np.array([[3, 4, 5]])
    [hidden] = torch_models.call(module, {"input_ids": ids, "attention_mask": np.ones_like(ids)}).values()
    assert hidden.shape == (1, 3, 16)
