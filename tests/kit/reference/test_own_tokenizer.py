"""The original gets what its own tokenizer makes of a text, and so does the exported graph, or both are refused."""

import json
import re
from pathlib import Path

import models
import numpy as np
import own_inputs
import pytest
import transformers

from engine.errors import StepError
from engine.kit.inputs import cases
from engine.kit.inputs import tokenizer as tokenizers
from engine.kit.inputs.samples import SampleText
from engine.kit.reference import own_tokenizer, reference_cases, torch_models
from engine.runtimes.onnxruntime import session as ort
from engine.steps.export import Export
from engine.steps.reference import Reference

TYPES = "token_type_ids"


@pytest.fixture
def samples(tmp_path):
    path = tmp_path / "samples.jsonl"
    lines = [{"text": text} for text in own_inputs.TEXTS]
    lines += [{"text": text, "pair": pair} for text, pair in own_inputs.PAIRS]
    path.write_text("\n".join(map(json.dumps, lines)))
    return path


def bert(directory, **settings):
    models.checkpoint(directory, "bert", task="text-classification")
    own_inputs.settings(directory, **settings)
    return directory


def refusal(call, *arguments, **named):
    with pytest.raises(StepError) as caught:
        call(*arguments, **named)
    return caught.value


@pytest.mark.parametrize(
    ("architecture", "types"),
    [
        ("xlnet", True),
        ("bert", False),
        pytest.param("xlnet", False, marks=pytest.mark.whole),
        pytest.param("bert", True, marks=pytest.mark.whole),
    ],
)
def test_the_graph_gets_token_types_where_the_tokenizer_gives_them(architecture, types, samples, tmp_path):
    checkpoint = tmp_path / "checkpoint"
    if architecture == "xlnet":
        own_inputs.xlnet(checkpoint, types=types)
    else:
        bert(checkpoint, model_input_names=["input_ids", "attention_mask", *([TYPES] if types else [])])
    report = Export().run(tmp_path / "exported", checkpoint=checkpoint)
    assert (TYPES in report.inputs) == types
    Reference().run(tmp_path / "reference", checkpoint=checkpoint, samples=samples)
    session = ort.session(tmp_path / "exported", threads=1)
    answered = [case for case in cases.load(tmp_path / "reference") if case.kind == "sample"]
    texts = [(text,) for text in own_inputs.TEXTS] + list(own_inputs.PAIRS)
    expected = own_inputs.users_logits(checkpoint, texts)
    for case, logits in zip(answered, expected, strict=True):
        np.testing.assert_allclose(case.outputs["logits"], logits, atol=1e-5)
        np.testing.assert_allclose(ort.run(session, case.inputs)["logits"], logits, atol=1e-4)
    # The token types of a pair must matter, or this test would have proved nothing.
    own_inputs.settings(checkpoint, model_input_names=["input_ids", "attention_mask", *([] if types else [TYPES])])
    assert abs(own_inputs.users_logits(checkpoint, texts[-1:])[0] - expected[-1]).max() > 1e-2


def test_a_tokenizer_that_pads_on_the_left_by_its_class_is_packaged_so(tmp_path):
    own_inputs.xlnet(tmp_path, types=True)
    assert transformers.AutoTokenizer.from_pretrained(tmp_path).padding_side == "left"
    assert tokenizers.load(tmp_path).side == "left"


def test_every_tokenizer_of_transformers_that_pads_on_the_left_is_known():
    names = transformers.models.auto.tokenization_auto.TOKENIZER_MAPPING_NAMES
    left = set()
    files = sorted(Path(transformers.__file__).parent.glob("models/*/tokenization_*.py"))
    assert len(files) > 50
    for path in files:
        for part in re.split(r"^class ", path.read_text("utf-8"), flags=re.MULTILINE)[1:]:
            if re.search(r'^    padding_side = "left"|^        padding_side="left"', part, re.MULTILINE):
                left.add(re.match(r"\w+", part)[0])
    assert left == tokenizers._LEFT
    families = {family for family, kind in names.items() if kind and kind.removesuffix("Fast") in left}
    assert families == tokenizers._LEFT_FAMILIES


def test_files_that_transformers_reads_otherwise_are_refused_until_it_wrote_them(samples, tmp_path):
    checkpoint = bert(tmp_path / "checkpoint", tokenizer_class="BertTokenizer", do_lower_case=False)
    samples.write_text('{"text": "the Film was good"}\n')
    error = refusal(Reference().run, tmp_path / "out", checkpoint=checkpoint, samples=samples)
    assert error.what == "the tokenizer's files do not do what transformers does with them"
    assert error.facts[0] == "of line 1: 'the Film was good'"
    assert error.facts[1].startswith("input_ids by BertTokenizer, from position 2: ")
    assert error.facts[2].startswith("input_ids by its files, from position 2: ")
    assert "save_pretrained" in error.hint
    again = tmp_path / "again"
    transformers.AutoTokenizer.from_pretrained(checkpoint).save_pretrained(again)
    for path in again.iterdir():
        path.rename(checkpoint / path.name)
    Reference().run(tmp_path / "out", checkpoint=checkpoint, samples=samples)


@pytest.mark.parametrize(
    ("family", "what"),
    [
        ("gpt2", "the tokenizer's files do not do what transformers does with them"),
        ("albert", "the checkpoint's own tokenizer cannot be loaded"),
    ],
)
def test_a_tokenizer_json_of_another_class_counts_once_its_class_is_named(family, what, tmp_path):
    models.save_tokenizer(tmp_path)
    (tmp_path / "tokenizer_config.json").unlink()
    (tmp_path / "config.json").write_text(json.dumps({"model_type": family}))
    text = SampleText("line 1", own_inputs.TEXTS[0])
    error = refusal(lambda: attached(tmp_path, text))
    assert error.what == what
    assert 'write "tokenizer_class": "PreTrainedTokenizerFast" into tokenizer_config.json' in error.hint
    (tmp_path / "tokenizer_config.json").write_text('{"tokenizer_class": "PreTrainedTokenizerFast"}')
    assert attached(tmp_path, text).own_inputs["input_ids"].shape == (1, 6)


def attached(directory, text):
    """Hold the two tokenizers of a directory against each other, for one text."""
    case = cases.Case(text.name, text.text, "sample", {}, {})
    return reference_cases.with_own_inputs(case, text, own_tokenizer.load(directory), tokenizers.load(directory))


def test_a_side_that_only_the_tokenizers_class_knows_is_refused_until_a_file_says_it(samples, tmp_path, monkeypatch):
    checkpoint = own_inputs.xlnet(tmp_path / "checkpoint", types=True)
    monkeypatch.setattr(tokenizers, "_LEFT", frozenset())
    error = refusal(Reference().run, tmp_path / "out", checkpoint=checkpoint, samples=samples)
    assert error.what == "the tokenizer pads texts on the left, and its files do not say so"
    assert error.hint == 'write "padding_side": "left" into tokenizer_config.json'
    own_inputs.settings(checkpoint, padding_side="left")
    Reference().run(tmp_path / "out", checkpoint=checkpoint, samples=samples)


def test_a_tokenizer_of_custom_code_is_refused_until_another_takes_its_place(tmp_path):
    checkpoint = bert(tmp_path / "checkpoint", auto_map={"AutoTokenizer": ["tokenization_own.OwnTokenizer", None]})
    error = refusal(torch_models.load, checkpoint, "text-classification")
    assert "that code is never run (trust_remote_code)" in error.what
    assert error.facts == ("tokenizer_config.json has auto_map",)
    models.save_tokenizer(checkpoint)
    assert torch_models.load(checkpoint, "text-classification").input_names == ("input_ids", "attention_mask", TYPES)
