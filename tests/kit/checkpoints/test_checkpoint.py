"""What a checkpoint directory says of itself."""

import json

import models
import pytest

from engine.errors import StepError
from engine.kit.checkpoints import checkpoint, sentences


@pytest.fixture
def folder(tmp_path):
    """Write a config.json with the given settings, and return its directory."""

    def write(**settings):
        (tmp_path / "config.json").write_text(json.dumps(settings))
        return tmp_path

    return write


def sentence_transformer(directory, **pooling):
    module = {"idx": 1, "path": "1_Pooling", "type": "sentence_transformers.models.Pooling"}
    (directory / "modules.json").write_text(json.dumps([module]))
    (directory / "1_Pooling").mkdir()
    (directory / "1_Pooling" / "config.json").write_text(json.dumps(pooling))
    return directory


def test_the_packaged_minilm_is_a_transformers_model_for_embeddings(minilm_checkpoint):
    assert checkpoint.kind(minilm_checkpoint) == "transformers"
    assert checkpoint.task(minilm_checkpoint, None) == "feature-extraction"
    assert checkpoint.max_sequence(minilm_checkpoint) == 512
    assert sentences.pooling(minilm_checkpoint) == "mean"
    assert checkpoint.tokenizer_file(minilm_checkpoint) == minilm_checkpoint / "tokenizer.json"


@pytest.mark.parametrize(
    ("architecture", "task"),
    [
        ("BertForSequenceClassification", "text-classification"),
        ("RobertaForTokenClassification", "token-classification"),
        ("DistilBertForQuestionAnswering", "question-answering"),
        ("MPNetForMaskedLM", "fill-mask"),
        ("ElectraModel", "feature-extraction"),
    ],
)
def test_the_architecture_names_the_task(folder, architecture, task):
    assert checkpoint.task(folder(architectures=[architecture], vocab_size=9), None) == task


def test_the_recipe_may_ask_for_another_task_than_the_head_is_for_which_is_not_read_then(folder, monkeypatch):
    """The key of a job has the code of the recipe's task alone."""
    read, known = set(), checkpoint.tasks.known
    monkeypatch.setattr(checkpoint.tasks, "known", lambda name: read.add(name) or known(name))
    assert checkpoint.task(folder(architectures=["BertForMaskedLM"]), "feature-extraction") == "feature-extraction"
    assert read == {"feature-extraction"}


def test_a_sentence_transformer_on_a_masked_language_model_is_for_embeddings(folder):
    directory = sentence_transformer(folder(architectures=["RobertaForMaskedLM"]), pooling_mode_cls_token=True)
    assert checkpoint.task(directory, None) == "feature-extraction"
    assert sentences.pooling(directory) == "cls"
    folder(architectures=["BertForSequenceClassification"])
    assert checkpoint.task(directory, None) == "text-classification", "a cross-encoder stays a classifier"


@pytest.mark.parametrize(
    ("settings", "task"),
    [
        ({"architectures": ["OPTForCausalLM"]}, "text-generation"),
        ({"architectures": ["GPT2LMHeadModel"]}, "text-generation"),
        ({"architectures": ["T5ForConditionalGeneration"]}, "text2text-generation"),
        ({"architectures": ["T5WithLMHeadModel"], "is_encoder_decoder": True}, "text2text-generation"),
        ({"architectures": ["T5Model"], "is_encoder_decoder": True, "vocab_size": 9}, "text2text-generation"),
    ],
)
def test_a_model_that_generates_says_which_way(folder, settings, task):
    assert checkpoint.task(folder(**settings), None) == task


@pytest.mark.parametrize("task", ["text-generation", "text2text-generation"])
def test_an_onnx_file_cannot_be_asked_to_generate(tmp_path, task):
    (tmp_path / "model.onnx").write_bytes(b"")
    with pytest.raises(StepError, match=f"{task} needs a model of transformers") as caught:
        checkpoint.task(tmp_path, task)
    assert "give the checkpoint as the source" in str(caught.value)


@pytest.mark.parametrize(
    ("settings", "task"),
    [
        ({"architectures": ["ViTForImageClassification"]}, "image-classification"),
        ({"architectures": ["ViTModel"]}, "image-feature-extraction"),
        ({"architectures": ["BeitModel"], "vocab_size": 8192, "image_size": 224}, "image-feature-extraction"),
        ({"architectures": ["CLIPVisionModelWithProjection"]}, "image-feature-extraction"),
        ({"architectures": ["SiglipVisionModel"]}, "image-feature-extraction"),
        ({"architectures": ["CLIPTextModelWithProjection"], "vocab_size": 49408}, "feature-extraction"),
        ({"architectures": ["CLIPModel"]}, "zero-shot-image-classification"),
        ({"architectures": ["SiglipModel"]}, "zero-shot-image-classification"),
        ({"architectures": ["DetrForObjectDetection"], "is_encoder_decoder": True}, "object-detection"),
        ({"architectures": ["SegformerForSemanticSegmentation"]}, "image-segmentation"),
    ],
)
def test_a_model_that_sees_names_its_task_and_the_recipe_must_name_it_too(folder, settings, task):
    directory = folder(**settings)
    assert checkpoint.task(directory, None) == task
    checkpoint.refuse_unnamed(directory, task, images=True)
    if task != "feature-extraction":
        with pytest.raises(StepError) as caught:
            checkpoint.refuse_unnamed(directory, task, images=False)
        assert caught.value.what == f"the checkpoint is a model for {task}, and the recipe does not say so"
        assert caught.value.hint == f"say `task: {task}` under `model:`"


@pytest.mark.parametrize(
    ("settings", "takes"),
    [
        ({"model_type": "depth_anything", "architectures": ["DepthAnythingForDepthEstimation"]}, "images"),
        ({"model_type": "audio-spectrogram-transformer", "architectures": ["ASTModel"]}, "sound"),
    ],
)
def test_what_takes_more_than_texts_and_does_no_task_says_what_it_takes(folder, settings, takes):
    with pytest.raises(StepError) as caught:
        checkpoint.task(folder(**settings), None)
    named = settings["architectures"][0]
    assert caught.value.what == f"{named} takes {takes}, and does none of the tasks that are supported"


def test_a_model_of_timm_or_an_onnx_file_may_classify_images(folder, tmp_path):
    timm = folder(architecture="resnet18", num_classes=10)
    assert checkpoint.kind(timm) == "timm"
    assert checkpoint.task(timm, None) == checkpoint.task(timm, "image-classification") == "image-classification"
    with pytest.raises(StepError, match="the task depth-estimation is not supported yet") as caught:
        checkpoint.task(folder(architectures=["BertModel"]), "depth-estimation")
    assert "the recipe asks for it" in caught.value.facts
    (tmp_path / "model.onnx").write_bytes(b"")
    assert checkpoint.task(tmp_path, "image-classification") == "image-classification"


@pytest.mark.parametrize("named", [["BertForPreTraining"], [], None, "BertModel"])
def test_a_model_that_does_not_say_its_task_needs_one_in_the_recipe(folder, named):
    with pytest.raises(StepError) as caught:
        checkpoint.task(folder(model_type="bert", architectures=named), None)
    assert "the model does not say what it is for" in str(caught.value)
    assert "say `task: feature-extraction` under `model:`" in str(caught.value)


def test_a_plain_onnx_file_is_about_tensors(tmp_path):
    (tmp_path / "model.onnx").touch()
    assert checkpoint.kind(tmp_path) == "onnx"
    assert checkpoint.config(tmp_path) == {}
    assert checkpoint.task(tmp_path, None) == "tensors"
    assert checkpoint.task(tmp_path, "text-classification") == "text-classification"
    assert checkpoint.max_sequence(tmp_path) is None
    assert checkpoint.tokenizer_file(tmp_path) is None


@pytest.mark.parametrize(
    ("settings", "tokens"),
    [
        ({"model_type": "bert", "max_position_embeddings": 512}, 512),
        ({"model_type": "roberta", "max_position_embeddings": 514, "pad_token_id": 1}, 512),
        ({"model_type": "roberta", "max_position_embeddings": 514, "pad_token_id": 0}, 513),
        ({"model_type": "xlm-roberta", "max_position_embeddings": 514}, 512),
        ({"model_type": "mpnet", "max_position_embeddings": 514, "pad_token_id": 0}, 512),
        ({"model_type": "gpt2", "n_positions": 1024}, 1024),
        ({"model_type": "t5", "n_positions": 512}, None),
        ({"model_type": "xlnet"}, None),
        ({"model_type": "bert", "max_position_embeddings": -1}, None),
    ],
)
def test_usable_tokens_are_positions_less_those_before_the_first(folder, settings, tokens):
    assert checkpoint.max_sequence(folder(**settings)) == tokens


@pytest.mark.parametrize("architecture", ["bert", "roberta", "mpnet"])
def test_a_real_model_takes_max_sequence_tokens_and_not_one_more(tmp_path, architecture):
    import torch
    from transformers import AutoModel

    directory = models.checkpoint(tmp_path / architecture, architecture, tokenizer=False)
    longest = checkpoint.max_sequence(directory)
    model = AutoModel.from_pretrained(directory).eval()
    with torch.inference_mode():
        model(input_ids=torch.full((1, longest), 5))
        with pytest.raises((IndexError, RuntimeError)):
            model(input_ids=torch.full((1, longest + 1), 5))


def test_axes_name_the_inputs_that_the_model_tells_apart(folder):
    bert = checkpoint.axes(folder(model_type="bert", vocab_size=9))
    assert bert == {name: ["batch", "sequence"] for name in ("input_ids", "attention_mask", "token_type_ids")}
    assert list(checkpoint.axes(folder(model_type="roberta", vocab_size=9, type_vocab_size=1))) == [
        "input_ids",
        "attention_mask",
    ]
    assert checkpoint.axes(folder(model_type="vit")) == {}


@pytest.mark.parametrize("text", ["{", "", "\0", '{"architectures": ["BertMo', "[" * 100_000])
def test_a_broken_config_is_one_clear_error(tmp_path, text):
    (tmp_path / "config.json").write_text(text)
    with pytest.raises(StepError, match=r"config\.json of the model is no valid JSON"):
        checkpoint.config(tmp_path)


def test_a_config_that_is_no_object_or_not_there_is_one_clear_error(tmp_path):
    with pytest.raises(StepError, match=r"the model has no config\.json"):
        checkpoint.kind(tmp_path)
    (tmp_path / "config.json").write_text("[1]")
    with pytest.raises(StepError, match=r"config\.json holds a list, not a JSON object"):
        checkpoint.kind(tmp_path)


def test_a_model_type_that_is_no_name_is_one_clear_error(folder):
    with pytest.raises(StepError) as caught:
        checkpoint.max_sequence(folder(model_type=["bert"], max_position_embeddings=40))
    assert str(caught.value) == "the model_type in config.json is no name\n  ['bert']\nhint: save the model again"
