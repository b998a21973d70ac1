"""Models that generate text, from a checkpoint to a package by one command."""

import generators
import pytest
from program import Program
from quick_program import quick

RECIPE = """\
name: talks
model: {{source: model}}
target: {{isa: avx2}}  # 7 bits: on a CPU without VNNI the sums of 8-bit products saturate
matrix: {{precision: [fp32, int8]}}
profiles: [{{batch: [1, 1, 4], sequence: [1, 8, 24]}}]
validate: {{cosine: {cosine}, agreement: 0.9, max_abs: {{at_most: 100}}}}
generate: {{max_new_tokens: 5}}
"""
MEASURED = "extends: r.yaml\nbench: {shapes: [{batch: 1, sequence: 8}], against: [{runtime: pytorch}], threads: 1}\n"


def build(project, family, *, cosine):
    """Build a family in fp32 and in int8; return the program, and the folders that each package serves."""
    folder = project / "project"
    folder.mkdir()
    (folder / "pyproject.toml").write_text("")
    generators.checkpoint(folder / "model", family)
    (folder / "r.yaml").write_text(RECIPE.format(cosine=cosine))
    program = quick(folder)
    packages = program.events("r.yaml")[-1]["packages"]
    assert set(packages) == {"talks-fp32", "talks-int8"}
    assert set(program.states("r.yaml").values()) == {"cached"}
    return program, {name: {path.name for path in (folder / "build" / name).iterdir()} for name in packages}


@pytest.mark.slow
@pytest.mark.whole
def test_a_model_behind_an_encoder_is_built_in_both_precisions(tmp_path):
    _, served = build(tmp_path, "bart", cosine=0.99)
    for name, folders in served.items():
        assert folders >= {f"{name}_encoder", f"{name}_decoder"}


@pytest.mark.slow
@pytest.mark.whole("test_query.py serves what generates; tests/steps/test_generation.py has its steps")
def test_a_decoder_is_built_and_whole_answers_are_measured(tmp_path):
    program, served = build(tmp_path, "gpt2", cosine=0.99)
    assert all(name in folders for name, folders in served.items())
    (program.folder / "measured.yaml").write_text(MEASURED)
    int8 = ("measured.yaml", "--only", "precision=int8")
    states = program.states(*int8)
    assert {job for job, state in states.items() if state == "built"} <= {"bench", "package"}
    shown = program.shown(*int8)
    assert [row["runtime"] for row in shown["bench"]] == ["onnxruntime-int8", "pytorch-fp32"]
    assert all(row["new_tokens"] == 5 and row["tokens_per_s"] > 0 for row in shown["bench"])
    table = program("show", *int8, expect=0).stdout
    assert "1 x 8 + 5" in table
    assert "each call is a whole answer of 5 new tokens" in table


ON_A_TEXT = """\
name: small
model: {source: model}
precision: int4
validate: {perplexity: {text: corpus.txt, at_most: 9}, cosine: 0.5, agreement: 0}
"""
TEXT = "The dog slept in the little house; nobody knew who had built it. "


@pytest.mark.slow
@pytest.mark.whole
def test_another_text_measures_again_and_another_bound_only_judges(tmp_path):
    (tmp_path / "pyproject.toml").write_text("")
    generators.checkpoint(tmp_path / "model", "gpt2")
    (tmp_path / "corpus.txt").write_text(TEXT * 9)
    (tmp_path / "r.yaml").write_text(ON_A_TEXT)
    program = Program(tmp_path)
    assert set(program.states("r.yaml").values()) == {"built"}
    shown = program.shown("r.yaml")
    measured = shown["validation"]["perplexity"]
    assert measured["ratio"] == pytest.approx(measured["value"] / measured["original"])
    assert "windows of 48, stride 24" in program("show", "r.yaml", expect=0).stdout
    (tmp_path / "r.yaml").write_text(ON_A_TEXT.replace("at_most: 9", "at_most: 0.1"))
    withheld = program("build", "r.yaml", expect=4)
    assert "the ratio of the perplexities (perplexity)" in withheld.stderr
    (tmp_path / "r.yaml").write_text(ON_A_TEXT)
    (tmp_path / "corpus.txt").write_text(TEXT.upper() * 9)
    states = program.states("r.yaml")
    assert {job for job, state in states.items() if state == "built"} == {"reference", "validate"}
    (tmp_path / "corpus.txt").write_bytes(b"\0" * 999)
    refused = program("build", "r.yaml", expect=2)
    assert "r.yaml:4:31" in refused.stderr
    assert "corpus.txt is no text" in refused.stderr
