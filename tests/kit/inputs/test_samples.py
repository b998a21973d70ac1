"""Samples: texts tokenized as the model's own tokenizer does, tensors as they are, and errors that name the line."""

from __future__ import annotations

import json
import shutil

import models
import pytest

from engine.errors import StepError
from engine.kit.inputs import samples
from engine.kit.inputs import tokenizer as tokenizers
from engine.kit.onnx.onnx_files import Input

TOKENS = {
    name: Input(name, "int64", ("batch", "sequence")) for name in ("input_ids", "attention_mask", "token_type_ids")
}
FORMS = 'hint: each line is {"text"}, {"text", "pair"} or {"question", "context"}, optionally with "label"'


@pytest.fixture(scope="module")
def checkpoint(tmp_path_factory):
    """What a tokenizer needs of a checkpoint: no weights."""
    directory = tmp_path_factory.mktemp("checkpoint")
    models.save_tokenizer(directory)
    settings = {"model_type": "bert", "max_position_embeddings": 40, "label2id": {"bad": 0, "good": 1}}
    (directory / "config.json").write_text(json.dumps(settings))
    return directory


@pytest.fixture
def lines(tmp_path):
    def write(*entries):
        path = tmp_path / "samples.jsonl"
        path.write_text("\n".join(line if isinstance(line, str) else json.dumps(line) for line in entries), "utf-8")
        return path

    return write


def refusal(call, *arguments):
    with pytest.raises(StepError) as caught:
        call(*arguments)
    return str(caught.value)


def test_texts_become_cases_with_the_special_tokens_and_types_of_the_model(checkpoint, lines):
    path = lines({"text": "the film was good"}, "", {"text": "the film", "pair": "not the plot", "label": 1})
    first, second = samples.read(path, checkpoint, TOKENS)
    words = models.vocabulary()
    ids = [words[word] for word in ("[CLS]", "the", "film", "was", "good", "[SEP]")]
    assert first.inputs["input_ids"].tolist() == [ids]
    assert first.inputs["attention_mask"].tolist() == [[1] * 6]
    assert second.inputs["token_type_ids"].tolist() == [[0, 0, 0, 0, 1, 1, 1, 1]]
    assert [(case.name, case.text, case.kind, case.label) for case in (first, second)] == [
        ("line 1", "the film was good", "sample", None),
        ("line 3", "the film | not the plot", "sample", 1),
    ]


def test_a_question_and_its_context_are_a_pair(checkpoint, lines):
    question = samples.read(lines({"question": "who", "context": "the actor"}), checkpoint, TOKENS)
    paired = samples.read(lines({"text": "who", "pair": "the actor"}), checkpoint, TOKENS)
    assert question[0].inputs["input_ids"].tolist() == paired[0].inputs["input_ids"].tolist()


def test_long_texts_are_cut_to_what_the_model_can_take(checkpoint, lines):
    path = lines({"text": "film " * 300}, {"text": "film " * 300, "pair": "plot " * 300})
    alone, paired = samples.read(path, checkpoint, TOKENS)
    assert alone.inputs["input_ids"].shape == (1, 40)
    assert paired.inputs["input_ids"].shape == (1, 40)
    assert set(paired.inputs["token_type_ids"][0].tolist()) == {0, 1}


@pytest.mark.parametrize(("limits", "length"), [((12, None), 12), ((10**30, 9), 9)])
def test_the_limits_of_the_tokenizer_and_of_sentence_transformers_count(checkpoint, lines, tmp_path, limits, length):
    own = shutil.copytree(checkpoint, tmp_path / "own")
    models.save_tokenizer(own, limit=limits[0])
    (own / "sentence_bert_config.json").write_text(json.dumps({"max_seq_length": limits[1]}))
    (case,) = samples.read(lines({"text": "film " * 300}), own, TOKENS)
    assert case.inputs["input_ids"].shape == (1, length)


def test_a_model_of_fixed_length_and_batch_gets_padded_and_repeated_rows(checkpoint, lines):
    fixed = {name: Input(name, "int64", (2, 10)) for name in TOKENS}
    short, long = samples.read(lines({"text": "the film"}, {"text": "film " * 30}), checkpoint, fixed)
    assert short.inputs["attention_mask"].tolist() == [[1] * 4 + [0] * 6] * 2
    assert long.inputs["input_ids"].shape == (2, 10)


@pytest.mark.parametrize("architecture", ["bert", "roberta"])
def test_rows_are_those_of_transformers_own_tokenizer(architecture, tmp_path):
    from transformers import PreTrainedTokenizerFast

    models.save_tokenizer(tmp_path, architecture, limit=20)
    (tmp_path / "config.json").write_text('{"model_type": "bert"}')
    theirs = PreTrainedTokenizerFast.from_pretrained(tmp_path)
    ours = tokenizers.load(tmp_path)
    assert ours.pad == theirs.pad_token_id
    for text, pair in [("A good film!", None), ("the plot " * 40, None), ("who is it", "the actor 🎉"), ("", None)]:
        row = ours.row(text, pair)
        expected = theirs(text, pair, truncation=True, return_token_type_ids=True)
        assert {name: tensor[0].tolist() for name, tensor in row.items()} == dict(expected)


def test_the_packaged_minilm_is_tokenized_without_the_padding_and_cutting_its_file_was_saved_with(minilm_checkpoint):
    tokenizer = tokenizers.load(minilm_checkpoint)
    assert tokenizer.row("Yes.")["input_ids"].tolist() == [[101, 2748, 1012, 102]]
    assert tokenizer.row("word " * 900)["input_ids"].shape == (1, 256)


def test_slow_tokenizer_files_are_converted(tmp_path):
    vocabulary = models.vocabulary()
    (tmp_path / "vocab.txt").write_text("\n".join(vocabulary))
    (tmp_path / "tokenizer_config.json").write_text('{"tokenizer_class": "BertTokenizer", "model_max_length": 64}')
    (tmp_path / "config.json").write_text('{"model_type": "bert"}')
    row = tokenizers.load(tmp_path).row("The film")
    assert row["input_ids"].tolist() == [[vocabulary[word] for word in ("[CLS]", "the", "film", "[SEP]")]]


def test_named_labels_become_the_models_numbers(checkpoint, lines):
    path = lines({"text": "a", "label": "good"}, {"text": "a", "label": "bad"}, {"text": "a", "label": 1})
    assert [case.label for case in samples.read(path, checkpoint, TOKENS)] == [1, 0, 1]


@pytest.mark.parametrize(
    ("config", "classes"),
    [
        ({}, ["LABEL_0", "LABEL_1"]),  # transformers writes no label2id where it is the default of two
        ({"num_labels": 3}, ["LABEL_0", "LABEL_1", "LABEL_2"]),
        ({"id2label": {"0": "no", "1": "yes"}}, ["no", "yes"]),
    ],
)
def test_a_model_without_label2id_has_the_classes_that_transformers_gives_it(lines, tmp_path, config, classes):
    models.save_tokenizer(tmp_path)
    (tmp_path / "config.json").write_text(json.dumps({"model_type": "bert"} | config))
    path = lines(*({"text": "a", "label": name} for name in classes))
    assert [case.label for case in samples.read(path, tmp_path, TOKENS)] == list(range(len(classes)))
    error = refusal(samples.read, lines({"text": "a", "label": "LABEL_9"}), tmp_path, TOKENS)
    assert error.startswith("the label 'LABEL_9' of line 1 is none of the model's classes\n")
    assert error.endswith(f"  the classes by its config.json: {', '.join(classes)}\nhint: give labels by their numbers")


def test_our_own_texts_are_of_every_length_and_script_and_pairs_for_questions():
    texts = samples.built_in()
    assert len(texts) == 48
    assert min(len(text.text) for text in texts) == 1
    assert max(len(text.text.split()) for text in texts) > 200
    assert any("🎉" in text.text for text in texts)
    assert any("公園" in text.text or "公园" in text.text for text in texts)
    assert all(text.pair is None for text in texts)
    assert all(text.pair for text in samples.built_in(paired=True))


@pytest.mark.parametrize(
    ("line", "what"),
    [
        ('{"text": "a"', "samples.jsonl:2 is no JSON"),
        ("[" * 100_000, "samples.jsonl:2 is no JSON"),
        ('["a"]', "samples.jsonl:2 is no JSON object"),
        ('{"sentence": "a"}', "samples.jsonl:2 has no usable text\n  unknown: sentence"),
        ('{"text": 3}', "samples.jsonl:2 has no usable text\n  it has: text"),
        ('{"question": "a"}', "samples.jsonl:2 has no usable text\n  it has: question"),
        ('{"label": 1}', "samples.jsonl:2 has no usable text\n  it has: label"),
        ('{"text": "a", "pair": 1}', "samples.jsonl:2 has no usable text\n  it has: text, pair"),
    ],
)
def test_a_line_that_is_no_sample_is_named_by_its_number(lines, line, what):
    text = refusal(samples.texts, lines({"text": "fine"}, line))
    assert text.startswith(what)
    assert text.endswith(FORMS)
    assert len(text) < 500


def test_other_lines_that_cannot_be_used_say_why(lines):
    image = refusal(samples.texts, lines({"image": "cat.png"}))
    assert image.startswith("samples.jsonl:1 names an image, and the model takes texts\n")
    half = refusal(samples.texts, lines('{"text": "a \\ud800"}'))
    assert half.startswith("samples.jsonl:1 holds half a character: a lone surrogate such as \\ud800")
    label = refusal(samples.texts, lines({"text": "a", "label": [1, 2]}))
    assert label == "samples.jsonl:1 has a label that is neither a number nor a name\n  [1, 2]"


def test_a_file_without_samples_or_of_another_kind_says_so(lines, tmp_path, checkpoint):
    assert refusal(samples.texts, lines("", "  ")) == f"samples.jsonl holds no samples\n{FORMS}"
    latin = tmp_path / "latin.jsonl"
    latin.write_bytes('{"text": "café"}'.encode("latin-1"))
    assert refusal(samples.texts, latin).startswith("latin.jsonl is no UTF-8 text\n  'utf-8' codec")
    other = refusal(samples.read, tmp_path / "samples.csv", checkpoint, TOKENS)
    assert other.startswith("samples come as .jsonl or .npz, and samples.csv is neither")


def test_texts_for_a_model_without_a_tokenizer_or_tokens_say_what_to_give(checkpoint, lines, tmp_path):
    (tmp_path / "config.json").write_text('{"model_type": "bert"}')
    text = lines({"text": "a"})
    assert refusal(samples.read, text, tmp_path, TOKENS) == (
        "the samples are texts, but the model has no tokenizer\nhint: give tokenizer: beside source, or samples as .npz"
    )
    assert refusal(samples.read, text, checkpoint, {"image": Input("image", "float32", ("batch", 3, 32, 32))}) == (
        "the samples are texts, but the model takes no tokens\n"
        "  it takes image: float32 [batch, 3, 32, 32]\n"
        "hint: give samples as .npz with one array per input"
    )


def test_a_broken_tokenizer_file_is_named(checkpoint, lines, tmp_path):
    broken = shutil.copytree(checkpoint, tmp_path / "broken")
    (broken / "tokenizer.json").write_text('{"version": "1.0"')
    assert refusal(samples.read, lines({"text": "a"}), broken, TOKENS).startswith("tokenizer.json cannot be read\n  ")


def test_a_text_that_gives_no_token_is_named(tmp_path, lines):
    from tokenizers import Tokenizer, pre_tokenizers
    from tokenizers import models as kinds

    bare = Tokenizer(kinds.WordLevel({"a": 0, "?": 1}, unk_token="?"))
    bare.pre_tokenizer = pre_tokenizers.Whitespace()
    bare.save(str(tmp_path / "tokenizer.json"))
    (tmp_path / "config.json").write_text('{"model_type": "gpt2"}')
    text = refusal(samples.read, lines({"text": "a"}, {"text": "  "}), tmp_path, TOKENS)
    assert text == "the tokenizer makes no token of line 2\n  '  '\nhint: leave it out of the samples"
