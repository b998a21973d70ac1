"""Proposals from the lengths of samples: a recipe with the proposed lines passes `recipe check`."""

import json

import pytest
import yaml as pyyaml
from hypothesis import given, settings
from hypothesis import strategies as st

from engine import feasibility
from engine.feasibility.facts import ModelFacts
from engine.kit.bench import proposal, sample_rows
from engine.kit.bench.sample_report import Batching, SampleLengths
from engine.recipe.load import load

AXES = dict.fromkeys(("input_ids", "attention_mask"), ("batch", "sequence"))
FACTS = ModelFacts(kind="transformers", task="feature-extraction", max_sequence=512, axes=AXES, parameters=1000)
HEAD = "name: m\nmodel: {source: model}\n"
BENCH = "bench: {samples: few.jsonl, shapes: [{batch: 8, sequence: samples}, {batch: 1, sequence: 16}]}\n"
TARGETS = {
    "onnxruntime": HEAD,
    "openvino": HEAD + "target: {runtime: openvino}\n",
    "tensorrt": HEAD + "target: {device: T4, runtime: tensorrt}\nprecision: fp16\n",
}


def batching(batch, order, texts_per_s, gain=None):
    interval = None if gain is None else (gain - 0.01, gain + 0.01)
    return Batching(
        batch=batch, order=order, padding=0.1, texts_per_s=texts_per_s, gain=gain, gain_interval=interval
    )  # fmt: skip


FASTER = (batching(1, "arrival", 100.0), batching(4, "arrival", 120.0, 1.2), batching(8, "sorted", 150.0, 1.5))


def measured(lengths, batchings=FASTER, limit=512):
    buckets = sample_rows.buckets(lengths, longest=limit)
    return SampleLengths(
        shape={"batch": 8, "sequence": "samples"}, texts=len(lengths), of_texts=len(lengths), tokens=sum(lengths),
        longest=max(lengths), limit=limit, batchings=batchings, buckets=buckets,
        padding_in_buckets=0.2, padding_in_one_bucket=0.6,
    )  # fmt: skip


@pytest.fixture(scope="module")
def project(tmp_path_factory):
    root = tmp_path_factory.mktemp("project")
    (root / "pyproject.toml").touch()
    (root / "model").mkdir()
    (root / "model" / "config.json").write_text("{}")
    (root / "few.jsonl").write_text(json.dumps({"text": "one"}) + "\n")
    return root


def loaded(project, text):
    (project / "r.yaml").write_text(text)
    (recipe,) = load(project / "r.yaml")
    return recipe


def proposed(project, text, lengths, facts=FACTS):
    """Return the proposal for a recipe, and the recipe with the proposal, which has passed all checks."""
    lines = proposal.yaml(loaded(project, text).recipe, facts, lengths)
    kept = "".join(line for line in text.splitlines(keepends=True) if not line.startswith("profiles:"))
    pasted = loaded(project, kept + lines)
    feasibility.check(pasted)
    feasibility.check_model(pasted, facts)
    return lines, pasted.recipe


LENGTHS = st.lists(st.integers(1, 512), min_size=1, max_size=30)


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("stated", ["", "profiles: [{batch: [1, 4, 16], sequence: [1, 128, 512]}]\n"])
@settings(max_examples=6, deadline=None)
@given(lengths=LENGTHS)
def test_a_recipe_with_the_proposed_lines_passes_every_check(project, target, stated, lengths):
    _, recipe = proposed(project, TARGETS[target] + stated + BENCH, measured(lengths))
    for length in lengths:  # every sample fits a profile
        assert any(each["sequence"].min <= length <= each["sequence"].max for each in recipe.profiles)
    assert max(each["sequence"].max for each in recipe.profiles) == 512
    assert max(each["batch"].max for each in recipe.profiles) >= 8


def test_the_profiles_are_the_buckets_up_to_the_longest_text_that_the_recipe_takes(project):
    lines, recipe = proposed(project, TARGETS["onnxruntime"] + BENCH, measured([9] * 50 + [30] * 50 + [100] * 5))
    assert lines.startswith("profiles:  # padding 20.0% of the positions with texts in buckets; 60.0% with")
    assert [tuple(each["sequence"].model_dump().values()) for each in recipe.profiles] == [
        (1, 16, 16), (17, 32, 32), (33, 104, 512),
    ]  # fmt: skip
    assert {each["batch"].opt for each in recipe.profiles} == {8}


def test_a_runtime_that_compiles_each_size_gets_one_size_for_each_bucket_and_free_shapes(project):
    lines, recipe = proposed(project, TARGETS["openvino"] + BENCH, measured([9] * 50 + [30] * 50))
    assert "  - {batch: 8, sequence: 16}\n  - {batch: 8, sequence: 32}\n" in lines
    assert recipe.profiles[-1]["sequence"].max == 512
    assert "triton" not in lines  # its backend pads every batch to the largest


def test_triton_joins_requests_only_if_that_was_faster_in_the_order_of_arrival(project):
    lines, recipe = proposed(project, TARGETS["onnxruntime"] + BENCH, measured([9, 30]))
    assert "in arrival order 1.20 x the texts of one at a time" in lines
    assert recipe.package.triton.max_batch_size == 4
    assert recipe.package.triton.model_extra == {"dynamic_batching": {"preferred_batch_size": [4]}}
    slower = (*FASTER[::2], batching(4, "arrival", 100.4, 1.004))
    lines, recipe = proposed(project, TARGETS["onnxruntime"] + BENCH, measured([9, 30], slower))
    assert "# no dynamic_batching: in arrival order, no batch was faster than one text at a time" in lines
    assert recipe.package.triton.max_batch_size is None


def test_the_axes_of_an_onnx_file_keep_their_names(project):
    axes = {"input_ids": ("batch", "input length"), "attention_mask": ("batch", "mask_length")}
    facts = ModelFacts(kind="onnx", max_sequence=None, axes=axes)
    stated = 'profiles: [{batch: [1, 1, 4], "input length": [1, 8, 64], mask_length: [1, 8, 64]}]\n'
    (project / "net.onnx").touch()
    recipe = loaded(project, "name: m\nmodel: {source: net.onnx}\n" + stated).recipe
    (written,) = pyyaml.safe_load(proposal.yaml(recipe, facts, measured([9])))["profiles"]
    assert written == {"batch": [1, 8, 8], "input length": [1, 16, 64], "mask_length": [1, 16, 64]}


def test_nothing_is_proposed_where_the_axes_are_not_known_or_nothing_was_measured(project):
    recipe = loaded(project, HEAD).recipe
    assert proposal.yaml(recipe, ModelFacts(kind="transformers"), measured([9])) == ""
    assert proposal.yaml(recipe, FACTS, measured([9], ())) == ""
