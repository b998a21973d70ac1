"""Latencies through a real Triton server, beside those in process: one command, one table, budgets that fail."""

import models
import pytest
from program import Program
from quick_program import quick
from tiny_project import OF_ONNX, RECIPE, SAMPLES

pytestmark = [pytest.mark.slow, pytest.mark.whole("test_query.py asks a real server for a package of each kind")]

WAYS = ("in-process", "triton-grpc", "triton-http")
SERVED = RECIPE.replace("bench:\n", f"bench:\n  via: [{', '.join(WAYS)}]\n  threads: 1\n").replace(
    "model: {source: model}\n", OF_ONNX
)


@pytest.fixture(scope="module")
def built(environment, tmp_path_factory):
    """A project whose recipe was built once with a server; what it said."""
    folder = tmp_path_factory.mktemp("served")
    (folder / "pyproject.toml").write_text("")
    (folder / "samples.jsonl").write_text(SAMPLES)
    (folder / "r.yaml").write_text(SERVED)
    models.classifier_with_tokenizer(folder / "model")
    program = quick(folder)
    program.environment["RECIPE_TRITON_VENV"] = str(environment)
    return program, program("build", "r.yaml", expect=0)


def test_ours_and_the_plain_model_are_measured_each_way(built):
    program, done = built
    rows = program.shown("r.yaml")["bench"]
    runtimes = ("onnxruntime-int8", "onnxruntime-fp32")
    assert [(row["via"], row["runtime"]) for row in rows] == [(way, name) for way in WAYS for name in runtimes]
    for row in rows:
        assert 0 < row["p50_ms"] <= row["p95_ms"] <= row["p99_ms"]
        assert set(row["ratio_to"]) == ({"onnxruntime-fp32"} if row["ours"] else set())
        assert f"{row['p50_ms']:.3f}" in done.stdout
    ours = {row["via"]: row["p50_ms"] for row in rows if row["ours"]}
    assert ours["in-process"] < min(ours["triton-grpc"], ours["triton-http"])  # by far: a model of two small layers


def test_the_table_says_each_way_and_what_served(built):
    program, done = built
    assert all(way in done.stdout for way in WAYS)
    assert "via triton: tiny_text on Triton 2.51.0 (installed by pip)" in done.stdout
    assert "a stand-in in Python for Triton's own backend" in done.stdout
    report = next(step["report"] for step in program.shown("r.yaml")["steps"] if step["job"] == "bench")
    assert report["server"] == {"kind": "pip", "version": "2.51.0", "stand_in": True, "asked": "tiny_text"}


def test_a_built_recipe_is_up_to_date_and_another_server_measures_again(built, tmp_path):
    program, _ = built
    assert set(program.states("r.yaml").values()) == {"cached"}
    assert "up to date" in program("build", "r.yaml", expect=0).stderr
    other = Program(program.folder)
    other.environment |= {**program.environment, "RECIPE_TRITON_VENV": str(tmp_path / "none")}
    changes = other.why("r.yaml")["bench"]["changes"]
    assert [change["row"] for change in changes] == ["facts.triton.server"]


def test_an_end_to_end_budget_fails_the_build_and_says_which_way(built):
    program, _ = built
    tight = "shapes: [{batch: 1, sequence: 8, budget: {p50_ms: %s}}]"
    rows = {row["via"]: row for row in program.shown("r.yaml")["bench"] if row["ours"]}
    between = (rows["in-process"]["p50_ms"] * rows["triton-grpc"]["p50_ms"]) ** 0.5
    text = SERVED.replace("shapes: [{batch: 1, sequence: 8}]", tight % round(between, 4))
    (program.folder / "tight.yaml").write_text(
        text.replace("name: tiny", "name: tight\npackage: {triton: {name: tiny}}")
    )
    done = program("build", "tight.yaml", expect=4)
    assert "batch 1 x sequence 8 via triton-grpc: p50_ms is" in done.stderr
    assert "via triton-http: p50_ms is" in done.stderr
    assert "sequence 8: p50_ms" not in done.stderr  # in process it is fast enough
    assert not (program.folder / "build" / "tight").exists()


def test_without_a_server_the_build_says_how_to_get_one(built, tmp_path):
    program, _ = built
    without = Program(program.folder)
    (tmp_path / "empty").mkdir()
    gone = {"RECIPE_TRITON_VENV": str(tmp_path / "none"), "PATH": str(tmp_path / "empty")}
    without.environment |= {**program.environment, **gone}
    done = without("build", "r.yaml", expect=1)
    assert "there is no Triton server" in done.stderr
    assert "recipe serve --install" in done.stderr
