"""The lengths of samples as a shape of bench: refused by name where there are none."""

import pytest

from engine import feasibility
from engine.errors import RecipeError
from engine.feasibility.facts import ModelFacts
from engine.recipe.load import load

SHAPE = "bench: {shapes: [{batch: 8, sequence: samples}]}\n"
HEAD = "name: m\nmodel: {source: model}\n"
FEW = "validate: {samples: few.jsonl}\n"
AXES = dict.fromkeys(("input_ids", "attention_mask"), ("batch", "sequence"))
TEXTS = ModelFacts(kind="transformers", max_sequence=512, axes=AXES)


@pytest.fixture
def read(tmp_path):
    (tmp_path / "pyproject.toml").touch()
    (tmp_path / "model").mkdir()
    (tmp_path / "model" / "config.json").write_text("{}")
    (tmp_path / "few.jsonl").write_text('{"text": "one"}\n')
    (tmp_path / "few.npz").touch()
    (tmp_path / "net.onnx").touch()

    def read(text):
        (tmp_path / "r.yaml").write_text(text)
        (loaded,) = load(tmp_path / "r.yaml")
        return loaded

    return read


def checked(loaded, facts=None):
    feasibility.check(loaded)
    if facts is not None:
        feasibility.check_model(loaded, facts)


def refused(read, text, facts=None):
    """Return the error for a recipe in which » marks the place of the error."""
    before = text.split("»")[0].splitlines()
    loaded = read(text.replace("»", ""))
    with pytest.raises(RecipeError) as caught:
        checked(loaded, facts)
    assert str(caught.value.position).endswith(f"r.yaml:{len(before)}:{len(before[-1]) + 1}")
    assert caught.value.hint
    return caught.value


def test_lengths_of_samples_pass_with_samples_of_validate_or_of_bench(read):
    for text in (FEW + SHAPE, SHAPE.replace("{shapes", "{samples: few.jsonl, shapes")):
        loaded = read(HEAD + text)
        checked(loaded, TEXTS)
        assert loaded.recipe.bench_samples.endswith("/few.jsonl")
    assert read(HEAD + FEW + "bench: {}\n").recipe.bench_samples is None


REFUSED = {
    "no samples": (HEAD + "bench: {shapes: [{batch: 8, sequence: »samples}]}", "names no samples whose lengths"),
    "tensors": (
        HEAD + "validate: {samples: few.npz}\nbench: {shapes: [{sequence: »samples}]}", "these samples are tensors"),
    "a server": (
        HEAD + FEW + "bench: {via: »[triton-grpc], shapes: [{sequence: samples}]}", "lengths of samples through a"),
    "generation": (
        HEAD.replace("model}", "model, task: text-generation}") + FEW + "bench: {shapes: [{sequence: »samples}]}",
        "lengths of samples of a model for text-generation"),
    "images": (
        HEAD.replace("source: model", "source: timm:resnet18") + FEW + "bench: {shapes: [{batch: 1, x: »samples}]}",
        "takes no tokens"),
    "samples without a shape": (HEAD + "bench: {samples: »few.jsonl}", "no shape of `bench` stands for the lengths"),
}  # fmt: skip


@pytest.mark.parametrize(("text", "what"), REFUSED.values(), ids=REFUSED)
def test_lengths_of_samples_are_refused_by_name(read, text, what):
    assert what in str(refused(read, text))


OF_MODEL = {
    "an image model": ({"pixel_values": ("batch", 3, 32, 32)}, "sequence", "takes no tokens"),
    "a fixed length": ({"input_ids": ("batch", 128)}, "sequence", "fixes the number of tokens at 128"),
    "the axis of the batch": (AXES, "batch", "`batch` is not the axis of tokens"),
}


@pytest.mark.parametrize(("axes", "axis", "what"), OF_MODEL.values(), ids=OF_MODEL)
def test_only_the_axis_of_tokens_has_lengths_of_samples(read, axes, axis, what):
    text = f"{HEAD}{FEW}profiles: [{{batch: [1, 2, 8]}}]\nbench: {{shapes: [{{{axis}: »samples}}]}}"
    facts = ModelFacts(kind="onnx", axes=axes)
    assert what in str(refused(read, text, facts))


def test_a_generating_model_is_refused_once_its_files_tell_its_task(read):
    facts = ModelFacts(kind="transformers", task="text-generation", max_sequence=64, axes=AXES)
    text = HEAD + FEW + "bench: {shapes: [{batch: 1, sequence: »samples}]}"
    assert "a model for text-generation" in str(refused(read, text, facts))


def test_the_tokens_of_an_onnx_file_may_have_any_name(read):
    axes = {"input_ids": ("n", "words"), "attention_mask": ("n", "words")}
    profiles = "profiles: [{n: [1, 2, 8], words: [1, 16, 64]}]\n"
    head = "name: m\nmodel: {source: net.onnx, tokenizer: model}\n" + profiles + FEW
    for shape in ("{n: 4, words: samples}", "{n: 4, 'input_ids[1]': samples}"):
        checked(read(head + f"bench: {{shapes: [{shape}]}}\n"), ModelFacts(kind="onnx", axes=axes))
