"""Reference: the original's own answers, for every sample and every kind of mask, the same in each run."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path

import graphs
import heads
import models
import numpy as np
import onnx
import pytest
import yaml

from engine.errors import StepError
from engine.kit.inputs import cases
from engine.kit.onnx import onnx_files
from engine.kit.reference import torch_models
from engine.recipe.schema import ModelSection, Recipe, Validation
from engine.recipe.values import Range
from engine.step import Source
from engine.steps.reference import Reference

ROOT = Path(__file__).parents[2]
ONNX_MAKERS = {
    "text": models.onnx_text,
    "vision": models.onnx_vision,
    "audio": models.onnx_audio,
    "recurrent": models.onnx_recurrent,
    "many-inputs": models.onnx_many_inputs,
}


@pytest.fixture(scope="module")
def bert(tmp_path_factory):
    return models.checkpoint(tmp_path_factory.mktemp("bert"), "bert", task="text-classification")


def twelve(path):
    lines = [{"text": f"the {word} was good", "label": number % 2} for number, word in enumerate(models.WORDS[:12])]
    path.write_text("\n".join(map(json.dumps, lines)))
    return path


@pytest.fixture
def samples(tmp_path):
    return twelve(tmp_path / "samples.jsonl")


@pytest.fixture(scope="module")
def answered(bert, tmp_path_factory):
    """What the original answers to twelve labelled texts, made once: the folder, and the report."""
    out = tmp_path_factory.mktemp("answered") / "out"
    return out, Reference().run(out, checkpoint=bert, samples=twelve(out.parent / "samples.jsonl"))


def bytes_of(directory):
    return {path.name: path.read_bytes() for path in directory.iterdir()}


def test_every_sample_is_run_alone_and_some_in_batches_with_masks_of_every_kind(bert, answered):
    out, report = answered
    kinds = {
        "sample": 12, "right-padded": 2, "left-padded": 2, "holed": 2, "batched": 2, "blank-row": 1, "long": 1,
    }  # fmt: skip
    assert report.to_json() == {
        "cases": 22, "kinds": kinds, "random": False, "samples": "file", "original": "pytorch-fp32",
    }  # fmt: skip
    by_name = {case.name: case for case in cases.load(out)}
    assert by_name["line 4"].text == "the of was good"
    assert by_name["line 4"].label == 1
    assert by_name["line 4"].inputs["input_ids"].shape == (1, 6)
    assert by_name["right-padded 1"].text == "line 1, line 2, line 4, line 5"
    assert by_name["right-padded 1"].inputs["attention_mask"].tolist()[0] == [1, 1, 1, 0, 0, 0]
    assert by_name["left-padded 2"].inputs["attention_mask"].tolist()[0] == [0, 0, 0, 1, 1, 1]
    assert by_name["holed 1"].inputs["attention_mask"].tolist()[1] == [1, 1, 0, 0, 1, 1]
    module = torch_models.load(bert, "text-classification")
    for case in by_name.values():
        assert list(case.outputs) == ["logits"]
        assert np.allclose(case.outputs["logits"], torch_models.call(module, case.inputs)["logits"], atol=1e-5)


def test_two_runs_give_the_same_bytes_whatever_the_threads(bert, answered, samples, tmp_path):
    import torch

    threads = torch.get_num_threads()
    torch.set_num_threads(2)
    try:
        Reference().run(tmp_path / "deep" / "second", checkpoint=bert, samples=samples)
        assert torch.get_num_threads() == 2
    finally:
        torch.set_num_threads(threads)
    first, second = bytes_of(answered[0]), bytes_of(tmp_path / "deep" / "second")
    assert first == second
    assert sorted(first) == ["cases.json", "padding.json", "tensors.npz"]


def test_a_text_model_without_samples_gets_our_own_texts(bert, tmp_path, capsys):
    report = Reference().run(tmp_path / "out", checkpoint=bert)
    assert report.kinds["sample"] == 48
    assert (report.random, report.samples) == (False, "built-in")
    log = capsys.readouterr()
    assert log.out.splitlines()[-1] == (
        "running pytorch-fp32 on 58 cases: "
        "48 sample, 2 right-padded, 2 left-padded, 2 holed, 2 batched, 1 blank-row, 1 long"
    )
    assert log.err == ""


@pytest.mark.parametrize("architecture", models.ARCHITECTURES)
@pytest.mark.sample(3)
def test_each_architecture_without_a_tokenizer_gets_random_tokens_that_it_can_take(architecture, tmp_path):
    checkpoint = models.checkpoint(tmp_path / "checkpoint", architecture, tokenizer=False)
    report = Reference().run(tmp_path / "out", checkpoint=checkpoint)
    assert (report.random, report.samples) == (True, "random")
    assert set(report.kinds) == {"random", "right-padded", "left-padded", "holed", "batched", "blank-row"}
    answered = cases.load(tmp_path / "out")
    assert max(case.inputs["input_ids"].shape[1] for case in answered) == 64
    pad = models.vocabulary(architecture)["<pad>" if "<pad>" in models.vocabulary(architecture) else "[PAD]"]
    for case in answered:
        shown = case.inputs["input_ids"][case.inputs["attention_mask"] == 1]
        assert (shown != pad).all()
        assert np.isfinite(case.outputs["last_hidden_state"]).all()


@pytest.mark.parametrize("name", ONNX_MAKERS)
def test_an_onnx_file_of_any_kind_answers_random_tensors(name, tmp_path):
    ONNX_MAKERS[name](tmp_path / "model" / "model.onnx")
    report = Reference(onnx=True).run(tmp_path / "out", checkpoint=tmp_path / "model")
    assert (report.random, report.original) == (True, "onnxruntime-fp32")
    answered = cases.load(tmp_path / "out")
    assert len({case.inputs[next(iter(case.inputs))].tobytes() for case in answered}) > 1
    for case in answered:
        assert all(tensor.size and np.isfinite(tensor).all() for tensor in case.outputs.values())
    Reference(onnx=True).run(tmp_path / "again", checkpoint=tmp_path / "model")
    assert bytes_of(tmp_path / "out") == bytes_of(tmp_path / "again")


def test_an_onnx_file_with_a_tokenizer_needs_neither_torch_nor_transformers(tmp_path, samples):
    models.onnx_text(tmp_path / "model" / "model.onnx")
    models.save_tokenizer(tmp_path / "model")
    program = f"""
import sys
sys.modules["torch"] = sys.modules["transformers"] = None
from pathlib import Path
from engine.steps.reference import Reference
here = Path({str(tmp_path)!r})
report = Reference(onnx=True).run(here / "out", checkpoint=here / "model", samples=here / "samples.jsonl")
masked = {{"right-padded": 2, "left-padded": 2, "holed": 2, "batched": 2, "blank-row": 1, "long": 1}}
assert report.kinds == {{"sample": 12, **masked}}, report
assert not Reference(onnx=True).run(here / "built-in", checkpoint=here / "model").random
"""
    command = [sys.executable, "-c", program]
    done = subprocess.run(command, check=False, cwd=ROOT, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr


def test_random_tokens_of_an_onnx_file_stay_within_each_profile(tmp_path):
    models.onnx_text(tmp_path / "model" / "model.onnx")
    ranges = [((1, 1), (4, 20)), ((2, 3), (30, 50))]
    profiles = tuple(
        {"batch": Range(min=b[0], opt=b[0], max=b[1]), "sequence": Range(min=s[0], opt=s[0], max=s[1])}
        for b, s in ranges
    )
    Reference(onnx=True, profiles=profiles).run(tmp_path / "out", checkpoint=tmp_path / "model")
    for case in cases.load(tmp_path / "out"):
        batch, sequence = ranges[int(case.name.removeprefix("profile ")[0]) - 1]
        rows, tokens = case.inputs["input_ids"].shape
        assert batch[0] <= rows <= batch[1]
        assert sequence[0] <= tokens <= sequence[1]


def test_tensors_from_a_file_are_run_as_they_are_and_masked_where_they_are_tokens(bert, tmp_path):
    ids = np.random.default_rng(0).integers(5, 40, (3, 9))
    tensors = {"input_ids": ids, "attention_mask": np.ones_like(ids), "token_type_ids": np.zeros_like(ids)}
    np.savez(tmp_path / "samples.npz", label=np.array([1, 0, 1]), **tensors)
    report = Reference().run(tmp_path / "out", checkpoint=bert, samples=tmp_path / "samples.npz")
    assert report.kinds == {
        "tensors": 3, "right-padded": 1, "left-padded": 1, "holed": 1, "batched": 1, "blank-row": 1,
        "long": 1,
    }  # fmt: skip
    answered = cases.load(tmp_path / "out")
    assert [case.label for case in answered[:3]] == [1, 0, 1]
    assert np.array_equal(answered[2].inputs["input_ids"], ids[2:3])


def test_a_sample_on_which_the_original_fails_is_named(bert, tmp_path):
    ids = np.full((1, 70), 7)  # more tokens than the model has positions for
    np.savez(tmp_path / "long.npz", input_ids=ids, attention_mask=ids // 7, token_type_ids=ids * 0)
    with pytest.raises(StepError) as caught:
        Reference().run(tmp_path / "out", checkpoint=bert, samples=tmp_path / "long.npz")
    text = str(caught.value)
    assert text.startswith("the original model (pytorch-fp32) fails on row 0\n")
    assert "input_ids: int64 [1, 70]" in text
    assert text.endswith("hint: is the sample one that the model is made for?")
    assert not (tmp_path / "out").exists()


def test_a_tokenizer_that_makes_more_tokens_than_the_model_has_is_told_apart(tmp_path):
    words = len(models.vocabulary())
    small = models.checkpoint(tmp_path / "small", "bert", task="text-classification", vocab_size=20)
    with pytest.raises(StepError) as caught:
        Reference().run(tmp_path / "out", checkpoint=small)
    assert f"has the id {words - 1}, and the model has only 20 embeddings" in str(caught.value)
    (small / "tokenizer.json").unlink()
    (small / "tokenizer_config.json").unlink()
    ids = np.full((1, 4), words)
    np.savez(tmp_path / "far.npz", input_ids=ids, attention_mask=ids * 0 + 1, token_type_ids=ids * 0)
    with pytest.raises(StepError, match=rf"^row 0 of the samples holds the token {words}\n  the model has 20 tokens"):
        Reference().run(tmp_path / "out", checkpoint=small, samples=tmp_path / "far.npz")


def test_a_model_of_a_hub_is_refused_for_what_check_refuses_on_this_machine(tmp_path):
    source = models.checkpoint(tmp_path / "model", "bert", task="text-classification", id2label={0: "a", 2: "b"})
    with pytest.raises(StepError, match="id2label names the classes 0, 2; the model has 0, 1"):
        Reference().run(tmp_path / "out", checkpoint=source)
    ranked = models.checkpoint(tmp_path / "ranked", "bert", task="text-classification")
    heads.edit(ranked / "config.json", sentence_transformers={"activation_fn": "torch.nn.modules.activation.Tanh"})
    with pytest.raises(StepError, match="scores are Tanh of the logits"):
        Reference().run(tmp_path / "out", checkpoint=ranked)


@pytest.mark.parametrize("label", [2, 99, -1])
def test_a_label_that_is_none_of_the_classes_is_refused_with_its_line(bert, samples, tmp_path, label):
    samples.write_text(samples.read_text() + "\n" + json.dumps({"text": "the plot", "label": label}))
    with pytest.raises(StepError) as caught:
        Reference().run(tmp_path / "out", checkpoint=bert, samples=samples)
    assert str(caught.value) == (
        f"the label {label} of line 13 is none of the model's classes\n  the model has 2 classes: 0 to 1"
    )


def test_an_original_that_does_not_agree_with_itself_is_refused(tmp_path):
    text = "(float[batch, 8] x) => (float[batch, 8] y) { noise = RandomNormalLike(x) y = Add(x, noise) }"
    graphs.write(tmp_path / "model", graphs.parsed(text))
    with pytest.raises(StepError) as caught:
        Reference(onnx=True).run(tmp_path / "out", checkpoint=tmp_path / "model")
    error = str(caught.value)
    assert error.startswith("the original model (onnxruntime-fp32) is not deterministic: asked twice, it gives two ans")
    assert "to random 1, in: y\n" in error


def test_sizes_that_do_not_suit_a_model_lead_to_a_profile_that_does(tmp_path):
    models.onnx_audio(tmp_path / "model" / "model.onnx")
    short = {"samples": Range(min=2, opt=2, max=2)}
    with pytest.raises(StepError) as caught:
        Reference(onnx=True, profiles=(short,)).run(tmp_path / "out", checkpoint=tmp_path / "model")
    assert str(caught.value).startswith("the original model (onnxruntime-fp32) fails on random 1\n")
    proposal = yaml.safe_load(caught.value.hint.removeprefix("the model runs with other sizes: write "))
    (profile,) = proposal["profiles"]
    assert list(profile) == ["batch", "samples"]
    assert profile["samples"][0] > 2
    suited = {axis: Range(min=low, opt=usual, max=high) for axis, (low, usual, high) in profile.items()}
    Reference(onnx=True, profiles=(suited,)).run(tmp_path / "suited", checkpoint=tmp_path / "model")


def test_random_tensors_that_suit_a_model_with_no_size_lead_to_samples(tmp_path):
    text = "(int64[n] x) => (float[n, 2] y) { index = Add(x, far) y = Gather(table, index) }"
    model = graphs.parsed(text, table=np.zeros((3, 2), np.float32), far=np.array(90))
    onnx_files.save(model, tmp_path / "model")
    with pytest.raises(StepError) as caught:
        Reference(onnx=True).run(tmp_path / "out", checkpoint=tmp_path / "model")
    assert caught.value.hint.startswith("random tensors do not suit every model: give samples (validate: {samples: ")


def test_answers_that_are_no_numbers_are_mentioned(bert, samples, tmp_path, capsys):
    from safetensors.torch import load_file, save_file

    broken = shutil.copytree(bert, tmp_path / "broken")
    weights = load_file(broken / "model.safetensors")
    weights["classifier.bias"][0] = float("nan")
    save_file(weights, broken / "model.safetensors", {"format": "pt"})
    Reference().run(tmp_path / "out", checkpoint=broken, samples=samples)
    assert "the original's outputs for line 1 contain infinities or NaN\n" in capsys.readouterr().out


def test_texts_of_an_onnx_file_that_does_not_say_its_limit_are_cut_to_the_profiles(tmp_path):
    model = graphs.parsed(
        "(int64[batch, length] input_ids) => (float[batch, length, 4] y) { words = Gather(table, input_ids) "
        "length = Shape<start = 1, end = 2>(input_ids) places = Slice(positions, zero, length) "
        "y = Add(words, places) }",
        ir=9, table=(len(models.vocabulary()), 4), positions=(8, 4), zero=np.array([0]),
    )  # fmt: skip
    graphs.write(tmp_path / "model", model)
    models.save_tokenizer(tmp_path / "model")
    with pytest.raises(StepError, match="fails on built-in"):
        Reference(onnx=True).run(tmp_path / "uncut", checkpoint=tmp_path / "model")
    profile = {"length": Range(min=1, opt=4, max=8)}
    Reference(onnx=True, profiles=(profile,)).run(tmp_path / "out", checkpoint=tmp_path / "model")
    assert max(case.inputs["input_ids"].shape[1] for case in cases.load(tmp_path / "out")) == 8


def recipe(source, **model):
    profile = {"batch": Range(min=1, opt=1, max=1)}
    samples = model.pop("samples", None)
    section = ModelSection(source=source, **model)
    return Recipe(name="r", model=section, profiles=(profile,), validate=Validation(samples=samples), precision="int8")


def test_profiles_count_only_where_random_tensors_are_drawn_within_them_or_texts_of_an_onnx_file_are_cut_to_them():
    assert Reference.for_recipe(recipe("file:/net.onnx", tokenizer="file:/tokenizer")).profiles
    assert Reference.for_recipe(recipe("file:/net.onnx")).profiles
    assert Reference.for_recipe(recipe("timm:resnet18")).profiles
    for other in (
        recipe("file:/net.onnx", samples="file:/samples.npz"),
        recipe("file:/net.onnx", tokenizer="file:/tokenizer", samples="file:/samples.npz"),
        recipe("hf:some/model"),
    ):
        assert Reference.for_recipe(other).profiles == ()


def test_the_key_holds_what_runs_the_original_and_the_samples_are_an_input():
    torch = Reference.for_recipe(recipe("hf:some/model", samples="file:/samples.jsonl", num_labels=2, random_head=True))
    assert set(torch.tools_used()) == {"torch", "transformers", "numpy", "safetensors", "sentencepiece", "tokenizers"}
    assert torch.facts_used() == ("cpu.isa",)
    assert torch.sources() == {"samples": Source(uri="file:/samples.jsonl", part="samples")}
    assert torch.options() == {
        "task": None,
        "num_labels": 2,
        "random_head": True,
        "onnx": False,
        "images": None,
        "profiles": [],
        "text_limit": None,
    }
    assert Reference.inputs() == ("checkpoint",)
    network = Reference.for_recipe(recipe("python:package/net.onnx"))
    assert set(network.tools_used()) == {"ml_dtypes", "numpy", "onnx", "onnxruntime", "protobuf", "tokenizers"}
    assert set(network.facts_used()) == {"cpu.isa", "onnxruntime.build"}
    assert "samples" not in network.options()


def test_a_row_without_tokens_that_spoils_its_neighbours_is_left_out(tmp_path, capsys):
    """The mean of a row without tokens is 0 / 0, and reaches the other rows by the mean over the batch."""
    path = models.onnx_text(tmp_path / "model" / "model.onnx")
    model = onnx.load(path)
    model.graph.node[-1].output[0] = "own"
    rest = graphs.parsed(
        "(float[n] own, float[n] visible, int64[n] tokens) => (float[n] logits) { "
        "count = ReduceSum<keepdims = 1>(visible, tokens) mean = Div(own, count) "
        "all = ReduceMean<axes = [0], keepdims = 1>(mean) less = Sub(mean, all) logits = Add(less, mean) }"
    )
    model.graph.node.extend(rest.graph.node)
    onnx.save(model, path)
    models.save_tokenizer(tmp_path / "model")
    report = Reference(onnx=True, task="text-classification").run(tmp_path / "out", checkpoint=tmp_path / "model")
    assert "blank-row" not in report.kinds
    assert "a row without tokens is left out" in capsys.readouterr().out
