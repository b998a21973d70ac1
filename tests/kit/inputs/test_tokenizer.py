"""Tokenizer: SentencePiece models without tokenizer.json, and tokenizers that fail say why."""

from __future__ import annotations

import json
import random

import models
import pytest

from engine.errors import StepError
from engine.kit.checkpoints import json_files, published
from engine.kit.inputs import tokenizer

FILES = {
    "albert": ("spiece.model", "AlbertTokenizer", ("[CLS]", "[SEP]")),
    "deberta-v2": ("spm.model", "DebertaV2Tokenizer", ("[CLS]", "[SEP]")),
    "xlm-roberta": ("sentencepiece.bpe.model", "XLMRobertaTokenizer", ("<s>", "</s>")),
}


@pytest.fixture(scope="module")
def pieces(tmp_path_factory):
    """A real SentencePiece model, trained on sentences of a few words."""
    import sentencepiece

    generator = random.Random(3)
    lines = [" ".join(generator.choices(models.WORDS, k=8)) for _ in range(300)]
    prefix = tmp_path_factory.mktemp("pieces") / "trained"
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(lines),
        model_prefix=str(prefix),
        vocab_size=80,
        hard_vocab_limit=False,
        control_symbols=["<pad>", "[CLS]", "[SEP]"],
        user_defined_symbols=["[MASK]"],
        minloglevel=2,
        num_threads=1,
    )
    return prefix.with_suffix(".model")


def directory(path, architecture, model):
    name, tokenizer, _ = FILES[architecture]
    path.mkdir()
    (path / name).write_bytes(model)
    (path / "tokenizer_config.json").write_text(json.dumps({"tokenizer_class": tokenizer}))
    (path / "config.json").write_text(json.dumps({"model_type": architecture, "vocab_size": 200}))
    return path


def refusal(call, *arguments):
    with pytest.raises(StepError) as caught:
        call(*arguments)
    return str(caught.value)


@pytest.mark.parametrize("architecture", FILES)
def test_a_sentencepiece_model_alone_is_read_piece_by_piece(architecture, pieces, tmp_path):
    import sentencepiece

    text = "the film was good"
    loaded = tokenizer.load(directory(tmp_path / architecture, architecture, pieces.read_bytes()))
    tokens = [loaded.backend.id_to_token(number) for number in loaded.row(text)["input_ids"][0]]
    own = sentencepiece.SentencePieceProcessor(model_file=str(pieces)).encode(text, out_type=str)
    begin, end = FILES[architecture][2]
    assert (tokens[0], tokens[-1]) == (begin, end)
    assert "".join(tokens[1:-1]) == "".join(own) == "▁the▁film▁was▁good"


@pytest.mark.parametrize("architecture", FILES)
def test_a_sentencepiece_model_that_cannot_be_read_is_named(architecture, tmp_path):
    broken = directory(tmp_path / architecture, architecture, b"no model at all")
    error = refusal(tokenizer.load, broken)
    assert error.startswith("the tokenizer has no tokenizer.json, and its files cannot be converted\n  ")
    assert FILES[architecture][0] in error
    assert "tiktoken" not in error


def test_a_sentencepiece_that_does_not_fit_its_protobuf_is_what_the_message_speaks_of(pieces, tmp_path, monkeypatch):
    import sys

    monkeypatch.setitem(sys.modules, "sentencepiece.sentencepiece_model_pb2", None)
    monkeypatch.delattr("sentencepiece.sentencepiece_model_pb2", raising=False)
    error = ValueError("`tiktoken` is required to read a `tiktoken` file")
    whole = directory(tmp_path / "albert", "albert", pieces.read_bytes())
    first, second = tokenizer._why_not_converted(whole, error)
    assert first == "neither transformers nor sentencepiece can read spiece.model"
    assert second.startswith("sentencepiece does not work here: ")


def test_a_vocabulary_without_the_token_for_unknown_words_is_said_with_the_text(tmp_path):
    models.save_tokenizer(tmp_path)
    (tmp_path / "config.json").write_text('{"model_type": "bert"}')
    file = tmp_path / "tokenizer.json"
    content = json.loads(file.read_text())
    del content["model"]["vocab"]["[UNK]"]
    content["added_tokens"] = [token for token in content["added_tokens"] if token["content"] != "[UNK]"]
    file.write_text(json.dumps(content))
    loaded = tokenizer.load(tmp_path)
    assert loaded.row("the film")["input_ids"].shape == (1, 4)
    error = refusal(loaded.row, "the film was 好")
    assert error.startswith("the tokenizer cannot read a text\n  tokenizers says: ")
    assert "the text: 'the film was 好'" in error
    assert error.endswith("does its vocabulary hold all its special tokens, the one for unknown words among them?")


def test_settings_that_are_no_object_say_nothing_and_broken_ones_are_named(tmp_path):
    path = tmp_path / "tokenizer_config.json"
    assert json_files.settings(path) == {}
    path.write_text("[]")
    assert json_files.settings(path) == {}
    path.write_text("[" * 100_000)
    assert refusal(json_files.settings, path).startswith("tokenizer_config.json of the model is no valid JSON\n")


@pytest.fixture
def lowercasing(tmp_path):
    """A tokenizer that tells upper case, for a model of sentence-transformers that does not."""
    models.checkpoint(tmp_path)
    file = tmp_path / "tokenizer.json"
    file.write_text(json.dumps({**json.loads(file.read_text()), "normalizer": None}))
    (tmp_path / "sentence_bert_config.json").write_text(json.dumps({"max_seq_length": 32, "do_lower_case": True}))
    return tmp_path


def test_a_setting_of_sentence_transformers_turns_texts_into_lower_case(lowercasing):
    upper, lower = (tokenizer.load(lowercasing).row(text) for text in ("The Film WAS good", "the film was good"))
    assert upper["input_ids"].tolist() == lower["input_ids"].tolist()
    (lowercasing / "sentence_bert_config.json").unlink()
    plain = tokenizer.load(lowercasing).row("The Film WAS good")
    assert plain["input_ids"].tolist() != upper["input_ids"].tolist()


@pytest.mark.whole
def test_lower_case_is_what_sentence_transformers_makes(lowercasing):
    from sentence_transformers.base.modules import Transformer

    text = "The Film WAS good"
    theirs = Transformer.load(str(lowercasing)).tokenizer([text])["input_ids"]
    assert theirs == tokenizer.load(lowercasing).row(text)["input_ids"].tolist()


def test_a_special_token_of_another_part_of_the_model_is_none_of_its_texts(tmp_path):
    folder = models.checkpoint(tmp_path / "model", "bert", task="text-classification")
    content = json.loads((folder / "tokenizer.json").read_text())
    rows = len(models.vocabulary())
    image = {**content["added_tokens"][0], "id": rows, "content": "<image_soft_token>", "special": True}
    content["added_tokens"].append(image)
    (folder / "tokenizer.json").write_text(json.dumps(content))
    published.refuse_more_tokens(folder, rows)
    row = tokenizer.load(folder).row("a <image_soft_token> film")
    assert row["input_ids"].max() < rows
    content["added_tokens"][-1]["special"] = False
    (folder / "tokenizer.json").write_text(json.dumps(content))
    with pytest.raises(StepError, match="the model has only"):
        published.refuse_more_tokens(folder, rows)
