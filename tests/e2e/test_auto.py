"""`runtime: auto` through the real command line: a choice is measured once, and stands while its key stands."""

import os
import shutil

import graphs
import openvino_here  # noqa: F401 - skips where OpenVINO is missing
import pytest
from onnx import helper
from program import Program

RECIPE = """\
name: net
model: {source: net/model.onnx}
target: {runtime: auto}
profiles: [{batch: [1, 2, 4]}]
validate: {cosine: 0.5, max_abs: {at_most: 100}, variation: 0.1}
bench: {shapes: [{batch: 1}], threads: 1}
"""
JOBS = ("fetch", "reference", "shape-infer", "fuse", "openvino-build", "measure-runtimes", "choose-runtime",
        "validate", "bench", "package")  # fmt: skip
CACHED = dict.fromkeys(JOBS, "cached")


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    """A project that was built and locked; `project` copies it."""
    folder = tmp_path_factory.mktemp("auto") / "project"
    folder.mkdir()
    (folder / "pyproject.toml").write_text("")
    (folder / "r.yaml").write_text(RECIPE)
    graphs.write(folder / "net", graphs.layers(16, 64))
    program = Program(folder)
    assert program.states("r.yaml") == dict.fromkeys(JOBS, "built")
    program("lock", "r.yaml", expect=0)
    return folder


@pytest.fixture
def project(built, tmp_path):
    shutil.copytree(built, tmp_path / "copy", copy_function=shutil.copy2)
    return Program(tmp_path / "copy")


def test_the_choice_is_the_runtime_of_the_package_and_of_the_bench_and_is_shown(project):
    variant = project.shown("r.yaml")
    chosen = variant["runtime"]["runtime"]
    assert set(variant["runtime"]["candidates"]) == {"onnxruntime", "openvino"}
    assert {row["runtime"] for row in variant["bench"]} == {f"{chosen}-fp32"}
    config = (project.folder / "build" / "net" / "net" / "config.pbtxt").read_text()
    assert f'"{chosen}' in config
    text = project("show", "r.yaml", expect=0).stdout
    assert f"auto -> {chosen}" in text
    assert "rejected " in text
    assert f"-> {chosen}" in project("why", "r.yaml", "choose-runtime", expect=0).stdout
    assert f"runtime: {chosen}" in (project.folder / "r.lock").read_text()


def test_nothing_is_measured_again_after_a_second_build_a_touch_and_a_changed_bound(project):
    assert project.states("r.yaml") == CACHED
    os.utime(project.folder / "r.yaml")
    os.utime(project.folder / "net" / "model.onnx")
    assert project.states("r.yaml") == CACHED
    bounded = project.states("r.yaml", "--set", "validate.cosine=0.6")
    assert bounded == {**CACHED, "choose-runtime": "built"}


def test_a_build_with_the_lock_measures_nothing_where_the_store_has_no_measurement(project):
    before = project.shown("r.yaml")["runtime"]
    records = (project.folder / "cache" / "records").iterdir()
    [record] = [path for path in records if "measure_runtimes" in path.read_text()]
    record.unlink()
    assert project.states("r.yaml", "--locked") == CACHED
    assert record.exists()
    assert project.shown("r.yaml")["runtime"] == before


def test_no_runtime_that_validates_is_exit_4_with_the_numbers_of_each(project):
    done = project("build", "r.yaml", "--set", "validate.max_abs.at_least=50", expect=4)
    assert "No runtime gives a model that keeps the bounds" in done.stderr
    assert "onnxruntime: The built model is too far" in done.stderr
    assert "openvino: The built model is too far" in done.stderr
    assert "cached   measure-runtimes" in done.stderr


@pytest.mark.whole("tests/steps/test_choose_runtime.py rejects candidates that cannot be built")
def test_where_openvino_cannot_have_the_model_onnx_runtime_is_kept(tmp_path):
    (tmp_path / "pyproject.toml").write_text("")
    (tmp_path / "r.yaml").write_text(RECIPE)
    (tmp_path / "alone.yaml").write_text(RECIPE.replace("name: net", "name: alone").replace("auto", "openvino"))
    nodes = [helper.make_node("MatMul", ["x", "w"], ["y"]), helper.make_node("Det", ["y"], ["d"])]
    outputs = [("y", graphs.FLOAT, ["batch", 4, 4]), ("d", graphs.FLOAT, ["batch"])]
    graph = graphs.graph(nodes, [("x", graphs.FLOAT, ["batch", 4, 4])], outputs, [graphs.weight("w", 4, 4)])
    graphs.write(tmp_path / "net", graph)
    program = Program(tmp_path)
    assert program.states("r.yaml") == dict.fromkeys(JOBS, "built")
    assert program.states("r.yaml") == CACHED
    assert program.shown("r.yaml")["runtime"]["runtime"] == "onnxruntime"
    assert "rejected openvino: cannot be built: OpenVINO cannot read model.onnx" in program("show", "r.yaml").stdout
    program("lock", "r.yaml", expect=0)
    shutil.rmtree(tmp_path / "cache")
    program("build", "r.yaml", "--locked", expect=0)
    assert program.shown("r.yaml")["runtime"]["candidates"]["openvino"]["rejected"]
    done = program("build", "alone.yaml", expect=4)
    assert "OpenVINO cannot have this model" in done.stderr + done.stdout
    assert "runtime: auto" in done.stderr + done.stdout
