"""A model that takes more than a text is refused before its weights are read, and the hint of the error works."""

import json

import numpy as np
import pytest
import transformers

from engine.errors import StepError
from engine.kit.checkpoints import model_inputs
from engine.kit.reference import families, torch_models
from engine.steps.reference import Reference

CLASSIFIES = "text-classification"
BEYOND = {
    "layoutlm": ("LayoutLMForTokenClassification", "token-classification", ["bbox"]),
    "layoutlmv2": ("LayoutLMv2ForSequenceClassification", CLASSIFIES, ["bbox", "image"]),
    "layoutlmv3": ("LayoutLMv3ForSequenceClassification", CLASSIFIES, ["bbox", "pixel_values"]),
    "lilt": ("LiltForSequenceClassification", CLASSIFIES, ["bbox"]),
    "bros": ("BrosModel", "feature-extraction", ["bbox"]),
    "luke": ("LukeModel", "feature-extraction", ["entity_ids", "entity_attention_mask", "entity_token_type_ids",
                                                 "entity_position_ids"]),
    "markuplm": ("MarkupLMForSequenceClassification", CLASSIFIES, ["xpath_tags_seq", "xpath_subs_seq"]),
    "visual_bert": ("VisualBertModel", "feature-extraction", ["visual_embeds", "visual_attention_mask",
                                                              "visual_token_type_ids", "image_text_alignment"]),
    "roc_bert": ("RoCBertForMaskedLM", "fill-mask", ["input_shape_ids", "input_pronunciation_ids"]),
    "xlm": ("XLMForSequenceClassification", CLASSIFIES, ["langs"]),
    "xmod": ("XmodForSequenceClassification", CLASSIFIES, ["lang_ids"]),
}  # fmt: skip
FIELDS = {"xlm": {"n_langs": 3}}
AUTO = (
    "AutoModel", "AutoModelForSequenceClassification", "AutoModelForTokenClassification",
    "AutoModelForQuestionAnswering", "AutoModelForMaskedLM", "AutoModelForCausalLM", "AutoModelForSeq2SeqLM",
)  # fmt: skip


def config(directory, family, architecture, **fields):
    values = transformers.AutoConfig.for_model(family, architectures=[architecture], **fields)
    values.save_pretrained(directory)
    return json.loads((directory / "config.json").read_text())


@pytest.mark.parametrize("family", BEYOND)
def test_inputs_that_no_text_gives_are_named_from_the_source_and_from_the_class(family, tmp_path):
    architecture, task, names = BEYOND[family]
    fields = config(tmp_path, family, architecture, **FIELDS.get(family, {}))
    declared = model_inputs.declared(fields)
    assert model_inputs.beyond_text(declared[1], fields) == names
    with pytest.raises(StepError) as caught:
        torch_models.load(tmp_path, task)
    assert caught.value.what == f"{architecture} takes more than a text: {', '.join(names)}"


@pytest.mark.parametrize(
    ("family", "architecture", "fields"),
    [
        ("bert", "BertForSequenceClassification", {}),
        ("xlnet", "XLNetForSequenceClassification", {}),
        ("longformer", "LongformerModel", {}),
        ("bart", "BartForConditionalGeneration", {}),
        ("clip_text_model", "CLIPTextModel", {}),
        ("xlm", "XLMForSequenceClassification", {"n_langs": 1}),
        ("xmod", "XmodForSequenceClassification", {"default_language": "en_XX"}),
    ],
)
def test_models_of_texts_take_nothing_more(family, architecture, fields, tmp_path):
    values = config(tmp_path, family, architecture, **fields)
    parameters = families.parameters(getattr(transformers, architecture))
    assert "input_ids" in parameters
    assert model_inputs.beyond_text(parameters, values) == []


def test_a_model_of_images_takes_no_text(tmp_path):
    config(tmp_path, "vit", "ViTModel")
    with pytest.raises(StepError) as caught:
        torch_models.load(tmp_path, "feature-extraction")
    assert caught.value.what == "ViTModel takes no text"
    assert caught.value.facts == ("its inputs: pixel_values, bool_masked_pos",)


def test_what_the_tokenizer_gives_counts_even_if_others_leave_it_out():
    parameters = {"input_ids": "torch.Tensor", "position_ids": "torch.Tensor | None", "use_cache": "bool | None"}
    assert model_inputs.beyond_text(parameters, {}) == []
    assert model_inputs.beyond_text(parameters, {}, given=("input_ids", "position_ids")) == ["position_ids"]


def test_a_source_that_is_not_there_tells_nothing():
    for fields in (
        {},
        {"architectures": ["OwnModel"], "model_type": "own"},
        {"architectures": ["OwnModel"], "model_type": "../bert"},
        {"architectures": "BertModel", "model_type": "bert"},
        {"architectures": ["BertModel"], "model_type": None},
    ):
        assert model_inputs.declared(fields) is None


def test_the_hint_works_an_onnx_file_with_all_inputs_and_samples_as_npz(tmp_path):
    import torch

    sizes = {"hidden_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 32}
    fields = transformers.LayoutLMConfig(vocab_size=40, max_2d_position_embeddings=64, **sizes)
    model = transformers.LayoutLMForSequenceClassification(fields).eval()
    generator = np.random.default_rng(0)
    given = {"input_ids": generator.integers(0, 40, (2, 7)), "bbox": np.sort(generator.integers(0, 60, (2, 7, 4)))}
    (tmp_path / "model").mkdir()
    names = list(given)
    torch.onnx.export(
        model,
        (),
        str(tmp_path / "model" / "model.onnx"),
        kwargs={name: torch.from_numpy(given[name]) for name in names},
        input_names=names,
        output_names=["logits"],
        dynamic_axes={name: {0: "batch"} for name in (*names, "logits")},
        dynamo=False,
    )
    np.savez(tmp_path / "samples.npz", **given)
    report = Reference(onnx=True).run(tmp_path / "out", checkpoint=tmp_path / "model", samples=tmp_path / "samples.npz")
    assert (report.kinds["tensors"], report.samples) == (2, "file")


def has_forward(model):
    """Whether a class can be looked at: some need a library that is not installed."""
    try:
        return callable(model.forward)
    except (AttributeError, ImportError):
        return False


@pytest.mark.whole
def test_the_source_of_every_model_names_the_inputs_of_its_class():
    compared = 0
    for auto in AUTO:
        for kind in getattr(transformers, auto)._model_mapping._model_mapping.items():
            family, names = kind
            for name in names if isinstance(names, tuple) else (names,):
                declared = model_inputs.declared({"architectures": [name], "model_type": family})
                model = getattr(transformers, name, None)
                if declared is None or not has_forward(model):
                    continue
                expected = model_inputs.beyond_text(families.parameters(model), {})
                assert model_inputs.beyond_text(declared[1], {}) == expected, name
                compared += 1
    assert compared > 500
