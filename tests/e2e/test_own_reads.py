"""This program reads nothing that no row of its keys covers: its own steps, on small models and shipped recipes."""

import generators
import graphs
import models
import onnx
import pytest
import timm_here
import tiny_project

from engine import api
from engine.builder.options import Options
from engine.builder.trace.allowed import ALLOWED
from engine.builder.trace.coverage import trace_of_record

SHIPPED = ("minilm_cpu", "minilm_cuda", "minilm_t4_packaged", "minilm_rtx")
"""The shipped recipes whose model needs no hub; jobs that need another machine wait."""


def gaps_of(recipe, cache):
    """Build a recipe and return what its jobs read without a row, by the job's name, and the names of the jobs."""
    session = api.session(recipe, cache=cache)
    options = Options(out=cache.parent / "built", parallel=1, keep_going=True, allow_waiting=True)
    session.build(options, lambda _: None)
    records = {name: record for summary in session.summaries() for name, record in summary.records.items()}
    every = {name: trace_of_record(session.lookup, record) for name, record in records.items()}
    assert None not in every.values()
    lines = {name: [f"{gap.at}: {gap.kind} {gap.name}" for gap in trace.gaps] for name, trace in every.items()}
    return {name: each for name, each in lines.items() if each}, set(lines)


def test_the_allow_list_has_at_most_twenty_lines_each_with_a_reason():
    assert 0 < len(ALLOWED) <= 20
    assert all(line.what and line.readers and line.reason.endswith(".") for line in ALLOWED)
    assert len({line.reason for line in ALLOWED}) == len(ALLOWED)


def test_the_steps_on_an_onnx_file(tmp_path):
    (tmp_path / "pyproject.toml").write_text("")
    onnx.save(graphs.layers(), tmp_path / "net.onnx")
    (tmp_path / "r.yaml").write_text(graphs.INT8_RECIPE)
    gaps, jobs = gaps_of(tmp_path / "r.yaml", tmp_path / "cache")
    assert gaps == {}
    assert jobs >= {"fetch", "reference", "shape-infer", "fuse", "quantize", "validate", "bench", "package"}


@pytest.mark.slow
@pytest.mark.whole
@pytest.mark.parametrize("architecture", ["bert", "roberta"])
def test_the_steps_on_a_checkpoint(architecture, tmp_path):
    (tmp_path / "pyproject.toml").write_text("")
    models.checkpoint(tmp_path / "model", architecture, task="text-classification")
    (tmp_path / "samples.jsonl").write_text(tiny_project.SAMPLES)
    (tmp_path / "r.yaml").write_text(tiny_project.RECIPE)
    gaps, jobs = gaps_of(tmp_path / "r.yaml", tmp_path / "cache")
    assert gaps == {}
    assert jobs == set(tiny_project.CHAIN)


@pytest.mark.slow
@pytest.mark.whole
@pytest.mark.parametrize("family", ["gpt2", "t5"])
def test_the_steps_on_a_model_that_generates(family, tmp_path):
    (tmp_path / "pyproject.toml").write_text("")
    generators.checkpoint(tmp_path / "model", family)
    (tmp_path / "r.yaml").write_text("name: m\nmodel: {source: model}\nvalidate: {cosine: 0.5, agreement: 0.1}\n")
    gaps, jobs = gaps_of(tmp_path / "r.yaml", tmp_path / "cache")
    assert gaps == {}
    assert jobs >= {"fetch", "export", "validate", "package"}


@pytest.mark.slow
@pytest.mark.whole
def test_the_steps_on_a_model_of_timm(tmp_path, timm, timm_folders, monkeypatch):
    for folder in reversed(timm_folders):
        monkeypatch.syspath_prepend(folder)
    (tmp_path / "pyproject.toml").write_text("")
    timm_here.checkpoint(tmp_path / "model", "test_resnet", size=64, num_classes=3)
    (tmp_path / "r.yaml").write_text("name: m\nmodel: {source: model, task: image-classification}\n")
    gaps, jobs = gaps_of(tmp_path / "r.yaml", tmp_path / "cache")
    # The fake torchvision of these tests belongs to no distribution.
    assert [line for lines in gaps.values() for line in lines if "fake_torchvision" not in line] == []
    assert jobs >= {"fetch", "export", "validate", "package"}


@pytest.mark.slow
@pytest.mark.whole
@pytest.mark.parametrize("name", SHIPPED)
def test_the_steps_on_a_shipped_recipe(name, shipped):
    gaps, jobs = gaps_of(shipped.folder / "recipes" / f"{name}.yaml", shipped.folder / "cache")
    assert gaps == {}
    assert jobs >= {"fetch"}
