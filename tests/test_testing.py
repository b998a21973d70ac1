"""The helpers for steps of other packages: a step runs as in a build, and joins the plan."""

import json
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import ClassVar

import graphs
import numpy as np
import onnx
import pytest
import toy
from onnx import helper
from program import Program

import engine
from engine import api, testing
from engine import step as steps
from engine.errors import StepError
from engine.step import Step
from engine.testing import install, plan_of, run_step

ROOT = Path(engine.__file__).parent.parent
EXAMPLE, LEAF = re.findall(r"```python\n(.*?)```", (ROOT / "CONTRIBUTING.md").read_text(), re.DOTALL)[:2]
"""The steps that CONTRIBUTING shows: one behind another step, and a leaf."""
RECIPE = {"name": "m", "model": {"source": "model.onnx"}, "steps": {"prune": {"outputs": ["one"]}}}


class Link(Step):
    makes: ClassVar[str] = "link"

    def run(self, out):
        (out / "here").symlink_to("/etc/passwd")


def test_a_step_runs_and_its_output_and_report_are_at_hand(tmp_path):
    output = run_step(toy.Begin(text="some words"), tmp_path)
    assert output.report == {"length": 10}
    assert (output.out / "text.txt").read_text() == "some words"
    assert {name: size for name, (size, _) in output.files.items()} == {"text.txt": 10}
    (tmp_path / "next").mkdir()
    assert run_step(toy.Shout(), tmp_path / "next", text=output.out).files.keys() == {"text.txt"}


def test_what_a_build_would_refuse_is_refused(tmp_path):
    text = tmp_path / "text"
    text.mkdir()
    (text / "text.txt").write_text("abc")
    for name, step, inputs, words in (
        ("a", toy.Spoil(), {"text": text}, "the input 'text' changed while"),
        ("b", Link(), {}, "no plain file"),
        ("c", toy.Misbehave(how="raise"), {}, "this cannot be"),
    ):
        (tmp_path / name).mkdir()
        with pytest.raises(StepError, match=words):
            run_step(step, tmp_path / name, **inputs)


def prune():
    names = {}
    exec(compile(EXAMPLE.replace("from __future__ import annotations\n", ""), "prune.py", "exec"), names)
    return names["Prune"]


def two_outputs(folder):
    """Write a graph with the outputs `one` and `two`."""
    nodes = [helper.make_node("Neg", ["in"], ["one"]), helper.make_node("Abs", ["in"], ["two"])]
    outputs = [(name, graphs.FLOAT, [1]) for name in ("one", "two")]
    graphs.write(folder, graphs.graph(nodes, [("in", graphs.FLOAT, [1])], outputs))


def test_the_step_that_contributing_shows_works(tmp_path):
    two_outputs(tmp_path / "model")
    output = run_step(prune()(outputs=["one"]), tmp_path, model=tmp_path / "model")
    assert output.report == {"dropped": 1}
    assert [each.name for each in onnx.load(output.out / "model.onnx").graph.output] == ["one"]


def test_it_is_seen_where_it_joins():
    needs = {job.name: job.needs for job in plan_of(RECIPE, prune())}
    assert needs["prune"] == {"model": "shape-infer"}
    assert needs["fuse"] == {"shaped": "prune"}


def stdout_of(*words, path):
    command = [sys.executable, "-m", "engine", *words]
    done = subprocess.run(command, cwd=path, env={"PYTHONPATH": str(path)}, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.fixture
def project(tmp_path):
    two_outputs(tmp_path)
    (tmp_path / "r.yaml").write_text("name: m\nmodel: {source: model.onnx}\nsteps: {prune: {outputs: [one]}}\n")
    return tmp_path


def test_a_new_step_of_ours_is_one_file(project):
    shutil.copytree(ROOT / "engine", project / "engine")
    (project / "engine" / "steps" / "prune.py").write_text(EXAMPLE)
    listed = " ".join(stdout_of("steps", path=project).split())
    assert "prune model -> pruned, after shape-infer" in listed
    assert " shape-infer prune fuse " in stdout_of("check", "r.yaml", path=project)


def test_a_step_of_another_package_is_one_file_and_an_entry_point(project):
    (project / "my_steps.py").write_text(EXAMPLE)
    install(project, "recipe.steps", "prune", "my_steps:Prune")
    listed = " ".join(stdout_of("steps", path=project).split())
    assert "prune model -> pruned, after shape-infer [my_steps]" in listed
    assert " shape-infer prune fuse " in stdout_of("check", "r.yaml", path=project)


def test_the_leaf_that_contributing_shows_makes_its_file_and_its_report(project):
    text = (project / "r.yaml").read_text().partition("steps:")[0]
    (project / "r.yaml").write_text(f"{text}steps: {{count-operators: {{}}}}\n")
    (project / "my_leaf.py").write_text(LEAF)
    install(project, "recipe.steps", "count-operators", "my_leaf:CountOperators")
    program = Program(project)
    program.environment["PYTHONPATH"] = str(project)
    program("build", "r.yaml", "--to", "count-operators", expect=0)
    [shown] = json.loads(program("show", "r.yaml", "--json", expect=0).stdout)
    steps = {each["job"]: each for each in shown["steps"]}
    assert steps["count-operators"]["report"] == {"nodes": 2, "kinds": {"Abs": 1, "Neg": 1}}
    table = project / "cache" / "artifacts" / steps["count-operators"]["artifact"] / "operators.csv"
    assert table.read_text() == "operator,count\nAbs,1\nNeg,1\n"
    assert steps["count-operators"]["artifact"] in program("show", "r.yaml", expect=0).stdout


REPORTED = {
    "every type": {
        "text": "a",
        "whole": 1,
        "real": 1.5,
        "flag": True,
        "nothing": None,
        "list": [1],
        "within": {"a": [2]},
    },
    "a path": Path(),
    "nan": float("nan"),
    "bytes": b"b",
    "a number of numpy": np.float32(1),
}


class Holds(Step):
    makes: ClassVar[str] = "held"
    which: str

    def run(self, out):
        (out / "x").write_text("")
        return {"value": REPORTED[self.which]}


def test_a_report_holds_json_values_alone(tmp_path):
    for which, value in REPORTED.items():
        folder = tmp_path / which
        folder.mkdir()
        if which == "every type":
            assert run_step(Holds(which=which), folder).report == {"value": value}
            continue
        with pytest.raises(StepError, match="JSON cannot represent"):
            run_step(Holds(which=which), folder)


def test_only_what_is_named_can_be_joined(tmp_path):
    with pytest.raises(ValueError, match=r"recipe\.step is none of recipe\.steps"):
        install(tmp_path, "recipe.step", "prune", "my_steps:Prune")


@pytest.mark.parametrize("module", [api, steps, testing], ids=lambda module: module.__name__)
def test_what_others_import_is_named_and_versioned(module):
    assert module.VERSION == 1
    assert [name for name in module.__all__ if not hasattr(module, name)] == []
    page = (ROOT / "docs" / "stability.md").read_text()
    assert f"`{module.__name__}.VERSION`" in page
