"""PyTorch compiled by torch.compile beside the built model, by the real compiler, in a real build."""

import shutil

import models
import pytest
from program import Program

from engine import api
from engine.builder.trace.coverage import trace_of_record
from engine.kit.bench.report import BenchReport
from engine.step import Section

RECIPE = """\
name: tiny
model: {{source: model}}
profiles: [{{batch: [1, 1, 2], sequence: [1, 8, 16]}}]
bench:
  shapes: [{{batch: 1, sequence: 8}}]
  against: [{{runtime: pytorch, precision: {0}}}, {{runtime: pytorch, precision: {0}, compile: default}}]
"""


@pytest.mark.slow
@pytest.mark.whole("a compilation takes a minute")
@pytest.mark.skipif(shutil.which("g++") is None, reason="torch.compile needs g++")
@pytest.mark.parametrize("precision", ["fp32", "bf16"])
def test_a_compiled_model_is_measured_beside_ours_and_leaves_nothing_behind(tmp_path, monkeypatch, precision):
    (tmp_path / "pyproject.toml").touch()
    (scratch := tmp_path / "scratch").mkdir()
    monkeypatch.setenv("TMPDIR", str(scratch))
    models.checkpoint(tmp_path / "model", "bert", task="text-classification")
    (tmp_path / "r.yaml").write_text(RECIPE.format(precision))
    program = Program(tmp_path)
    program("build", "r.yaml", expect=0)
    session = api.session(tmp_path / "r.yaml", cache=tmp_path / "cache")
    [summary] = session.summaries()
    report = summary.report(Section.BENCH, BenchReport)
    assert report.unmeasured == ()
    names = ["onnxruntime-fp32", f"pytorch-{precision}", f"pytorch-{precision}-compile"]
    assert [row.runtime for row in report.rows] == names
    assert report.rows[0].ratio_to.keys() == {*names[1:]}
    log = program("logs", "r.yaml", "bench", expect=0).stdout
    assert log.count(f"pytorch-{precision}-compile was compiled for input_ids [1, 8]") == 1
    assert list(scratch.rglob("*.cpp")) == list((tmp_path / "cache").rglob("*.cpp")) == []
    trace = trace_of_record(session.lookup, summary.records["bench"])
    assert [gap.name for gap in trace.gaps if gap.kind == "program"] == []
    assert "cached   bench" in program("build", "r.yaml", expect=0).stderr
