"""Entities as the token-classification pipeline of transformers groups them."""

import json

import models
import numpy as np
import pytest
import transformers
from tokenizers import Tokenizer, pre_tokenizers, processors
from tokenizers import models as tokenizer_models

from engine.kit.inputs import tokenizer as tokenizers
from engine.kit.onnx.onnx_files import Input
from engine.kit.triton.answers import tags
from engine.kit.triton.config import Signature
from engine.kit.triton.served.tag import Work
from engine.kit.triton.text import ServedTokenizer
from engine.tasks import AnswerTensor

NAMES = ("O", "B-PER", "I-PER", "B-LOC", "I-LOC", "MISC")
TEXTS = ("The ships of the river, unaffected and warm!", "films", "", "Ünknown 日本語 plot👍🏽", "a plot  and\ta film")


def word_pieces(folder):
    models.checkpoint(folder, "distilbert", task="token-classification", id2label=dict(enumerate(NAMES)))
    settings = json.loads((folder / "tokenizer_config.json").read_text())
    (folder / "tokenizer_config.json").write_text(json.dumps({**settings, "unk_token": "[UNK]"}))
    return folder


def bytes_without_prefix(folder):
    """The same model with a tokenizer of bytes, whose tokens say nothing of words."""
    word_pieces(folder)
    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    words = {token: number for number, token in enumerate(["[CLS]", "[SEP]", "[PAD]", *alphabet])}
    tokenizer = Tokenizer(tokenizer_models.BPE(words, []))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]", special_tokens=[("[CLS]", words["[CLS]"]), ("[SEP]", words["[SEP]"])]
    )
    tokenizer.add_special_tokens(["[CLS]", "[SEP]", "[PAD]"])
    tokenizer.save(str(folder / "tokenizer.json"))
    settings = {"model_max_length": 64, "pad_token": "[PAD]", "tokenizer_class": "PreTrainedTokenizerFast"}
    (folder / "tokenizer_config.json").write_text(json.dumps(settings))
    return folder


@pytest.fixture(scope="module", params=[word_pieces, bytes_without_prefix])
def checkpoint(request, tmp_path_factory):
    return request.param(tmp_path_factory.mktemp("tags") / "model")


def work(checkpoint, folder, strategy):
    """The served code with the settings and files that a package gets."""
    logits = Input("logits", "float32", ("batch", "sequence", len(NAMES)))
    text = ServedTokenizer(
        tokenizers.load(checkpoint), AnswerTensor("TEXT", "TYPE_STRING", (1,)), "", 1000,
        options={"aggregation_strategy": strategy},
    )  # fmt: skip
    answer = tags.make(Signature({}, {"logits": logits}), checkpoint, text)
    assert {"entities", "entity_scores", "entity_texts", "entity_offsets"} < set(answer.outputs)
    for name, content in answer.files.items():
        (folder / name).write_bytes(content)
    return Work(folder, answer.settings)


@pytest.mark.parametrize("strategy", ["simple", "first", "average", "max"])
def test_entities_are_those_of_the_pipeline(checkpoint, tmp_path, strategy):
    served = work(checkpoint, tmp_path, strategy)
    tokenizer = transformers.AutoTokenizer.from_pretrained(checkpoint)
    model = transformers.AutoModelForTokenClassification.from_pretrained(checkpoint)
    pipeline = transformers.TokenClassificationPipeline(model=model, tokenizer=tokenizer, aggregation_strategy=strategy)
    rng = np.random.default_rng(0)
    for text in TEXTS:
        tokens = tokenizer(text, return_offsets_mapping=True, return_special_tokens_mask=True)
        for _ in range(10):
            logits = 2 * rng.standard_normal((len(tokens["input_ids"]), len(NAMES))).astype(np.float32)
            shares = np.exp(logits) / np.exp(logits).sum(axis=1, keepdims=True)
            gathered = pipeline.gather_pre_entities(
                text, np.array(tokens["input_ids"]), shares, tokens["offset_mapping"],
                np.array(tokens["special_tokens_mask"]), pipeline._postprocess_params["aggregation_strategy"],
            )  # fmt: skip
            expected = [
                each
                for each in pipeline.aggregate(gathered, pipeline._postprocess_params["aggregation_strategy"])
                if each["entity_group"] != "O"
            ]
            special = np.array(tokens["special_tokens_mask"], bool)[:, None]
            answer = served({
                "logits": logits[None],
                "input_ids": np.array([tokens["input_ids"]]),
                "attention_mask": np.array([tokens["attention_mask"]]),
                "offsets": np.where(special, -1, np.array(tokens["offset_mapping"]))[None],
                "TEXT": np.array([[text.encode()]], dtype=object),
            })  # fmt: skip
            assert [name.decode() for name in answer["entities"][0]] == [each["entity_group"] for each in expected]
            places = [[each["start"], each["end"]] for each in expected]
            assert answer["entity_offsets"][0].tolist() == places
            assert [each.decode() for each in answer["entity_texts"][0]] == [text[a:b] for a, b in places]
            assert np.allclose(answer["entity_scores"][0], [each["score"] for each in expected], atol=1e-5)


def test_rows_with_fewer_entities_are_filled_up(checkpoint, tmp_path):
    served = work(checkpoint, tmp_path, "simple")
    logits = np.full((2, 1, len(NAMES)), -9, np.float32)
    logits[0, 0, 1], logits[1, 0, 0] = 9, 9
    answer = served({
        "logits": logits, "input_ids": np.ones((2, 1), np.int64), "attention_mask": np.ones((2, 1), np.int64),
        "offsets": np.array([[[0, 1]], [[0, 1]]]), "TEXT": np.array([[b"a"], [b"b"]], dtype=object),
    })  # fmt: skip
    assert answer["entities"].tolist() == [[b"PER"], [b""]]
    assert answer["entity_offsets"].tolist() == [[[0, 1]], [[-1, -1]]]
    assert answer["entity_scores"][1].tolist() == [0]
