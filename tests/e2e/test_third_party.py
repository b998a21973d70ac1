"""A step of another installed package joins the plan."""

import json

import graphs
import onnx
import pytest

STEP = '''
"""Stamps a text onto a model."""
import shutil
from pathlib import Path
from typing import ClassVar
from engine.step import Step


class Stamp(Step):
    """Stamps a text onto a model."""

    makes: ClassVar[str] = "stamped"
    after: ClassVar[str] = "shape-infer"
    text: str

    def run(self, out: Path, *, model: Path):
        import onnx

        loaded = onnx.load(model / "model.onnx")
        loaded.doc_string = self.text
        onnx.save(loaded, out / "model.onnx")
        return {"stamped": self.text}
'''
PLAIN = "name: m\nmodel: {source: net.onnx}\n"
PROFILES = "profiles: [{batch: [1, 2, 4]}]\n"
RECIPE = PLAIN + "steps: {stamp: {text: hello}}\n" + PROFILES


@pytest.fixture
def project(empty):
    site = empty.folder / "site"
    info = site / "stamp_package-1.0.dist-info"
    info.mkdir(parents=True)
    (site / "stamp_package.py").write_text(STEP)
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: stamp-package\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text("[recipe.steps]\nstamp = stamp_package:Stamp\n")
    empty.environment["PYTHONPATH"] = str(site)
    onnx.save(graphs.layers(), empty.folder / "net.onnx")
    (empty.folder / "r.yaml").write_text(RECIPE)
    return empty


def test_it_joins_the_plan_and_everything_downstream_takes_its_output(project):
    events = project.events("r.yaml")
    needs = {job["job"]: job["needs"] for job in events[0]["jobs"]}
    assert needs["stamp"] == ["shape-infer"]
    assert needs["fuse"] == ["stamp"]
    assert {event["job"]: event["state"] for event in events if event["event"] == "end"}["package"] == "built"
    assert "stamp_package" in project("steps", expect=0).stdout


@pytest.mark.whole("test_it_joins_the_plan_and_everything_downstream_takes_its_output")
def test_its_code_counts_by_the_names_of_recipe_build_too(project):
    text = STEP.replace("from engine.step import Step", "from recipe_build.step import Step")
    (project.folder / "site" / "stamp_package.py").write_text(text)
    assert project.states("r.yaml", "--to", "stamp")["stamp"] == "built"


FACT = """
import os
from engine.step import Known, fact

SKY = os.path.join(os.path.dirname(__file__), "sky.txt")


@fact("weather")
def weather(_hardware):
    with open(SKY) as file:
        return Known(file.read() + os.environ.get("SEASON", ""), (SKY,), ("SEASON",))
"""


@pytest.mark.whole("test_it_joins_the_plan_and_everything_downstream_takes_its_output")
def test_an_up_to_date_build_notices_a_change_behind_a_fact_that_only_its_package_knows(project):
    site = project.folder / "site"
    declared = STEP.replace("    text: str\n", '    facts: ClassVar[tuple[str, ...]] = ("weather",)\n    text: str\n')
    (site / "stamp_package.py").write_text(declared + FACT)
    (site / "sky.txt").write_text("blue")
    words = ("r.yaml", "--to", "stamp")
    for _ in range(2):
        project("build", *words, expect=0)
    assert "pydantic" not in project.imports("build", *words)
    (site / "sky.txt").write_text("grey")
    [change] = project.why("r.yaml")["stamp"]["changes"]
    assert change == {"row": "facts.weather", "old": "blue", "new": "grey"}
    assert project.states(*words)["stamp"] == "built"
    project("build", *words, expect=0)
    assert "pydantic" not in project.imports("build", *words)
    project.environment["SEASON"] = " in autumn"
    assert project.states(*words)["stamp"] == "built"


def test_a_recipe_that_does_not_ask_for_it_is_left_alone(project):
    (project.folder / "r.yaml").write_text(PLAIN + PROFILES)
    assert "stamp" not in project.why("r.yaml")


@pytest.mark.parametrize(
    ("old", "new", "says"),
    [
        ("text: hello", "txt: hello", "stamp"),
        ("stamp:", "stomp:", "there is no step 'stomp'"),
        ("steps: {", "steps: {quantize: {reduce_range: true}, ", "the step 'quantize' takes no options under `steps`"),
    ],
    ids=["an option that it does not have", "a step that nobody brings", "options that no step would read"],
)
def test_what_steps_cannot_be_is_refused_with_its_place(project, old, new, says):
    (project.folder / "r.yaml").write_text(RECIPE.replace(old, new))
    done = project("check", "r.yaml", expect=2)
    assert "r.yaml:3:" in done.stderr
    assert says in done.stderr


def test_a_step_that_cannot_be_loaded_names_its_package(project):
    (project.folder / "site" / "stamp_package.py").write_text("import nothing_of_this_name")
    done = project("steps", expect=1)
    assert "the step 'stamp' of stamp-package 1.0 cannot be loaded" in done.stderr


def test_the_json_of_why_says_new_for_a_step_that_never_ran(project):
    findings = json.loads(project("why", "r.yaml", "stamp", "--json", expect=0).stdout)
    assert findings[0]["state"] in ("new", "unknown")
