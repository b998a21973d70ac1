"""What a step of another package reads without a row of its key: warnings, `hermetic`, and `recipe why --read`."""

import json
import os
import shutil

import pytest

from engine.testing import install

STEP = '''
"""Stamps a text onto a model."""
import os
from pathlib import Path
from typing import ClassVar
from engine.step import Step


class Stamp(Step):
    """Stamps a text onto a model."""

    makes: ClassVar[str] = "stamped"
    after: ClassVar[str] = "fetch"
    tools: ClassVar[tuple[str, ...]] = ("ml_dtypes", "numpy", "onnx", "protobuf")

    def run(self, out: Path, *, model: Path):
        import onnx

        loaded = onnx.load(model / "model.onnx")
        which = "words"
        loaded.doc_string = (Path(__file__).parents[1] / f"{which}.txt").read_text() + str(os.cpu_count())
        onnx.save(loaded, out / "model.onnx")
'''
DECLARED = STEP.replace("\n\nclass", '\ndata = ("../words.txt",)\n\nclass', 1).replace(
    "    makes:", '    facts: ClassVar[tuple[str, ...]] = ("cpu.count",)\n    makes:'
)
RECIPE = "name: m\nmodel: {source: net.onnx}\nprofiles: [{batch: [1, 2, 4]}]\nsteps: {stamp: {}}\n"
BUILD = ("r.yaml", "--to", "stamp")


@pytest.fixture
def project(empty, tmp_path_factory):
    import graphs
    import onnx

    site = empty.folder / "site"
    install(site, "recipe.steps", "stamp", "stamp_package:Stamp")
    (site / "stamp_package.py").write_text(STEP)
    (empty.folder / "words.txt").write_text("one")
    empty.environment["PYTHONPATH"] = str(site)
    onnx.save(graphs.layers(), empty.folder / "net.onnx")
    (empty.folder / "r.yaml").write_text(RECIPE)
    return empty


def gaps(project, expect=0):
    [stamp] = [
        event for event in project.events(*BUILD, expect=expect) if event.get("job") == "stamp" and "state" in event
    ]
    return stamp


def test_a_read_without_a_row_is_a_warning_that_names_the_file_and_the_line(project):
    done = project("build", *BUILD, expect=0)
    line = (
        STEP.splitlines().index(
            '        loaded.doc_string = (Path(__file__).parents[1] / f"{which}.txt").read_text() + str(os.cpu_count())'
        )
        + 1
    )
    assert "warning: stamp reads what no row of its key covers" in done.stderr
    words = project.folder / "words.txt"
    assert f"stamp_package.py:{line} reads the file {words}: let a field of the type Source name it" in done.stderr
    assert (
        f'stamp_package.py:{line} reads the number of CPUs: declare it in the step: facts = ("cpu.count",)'
        in done.stderr
    )
    stamp = gaps(project)  # the job is cached now, and the warning stays
    assert stamp["state"] == "cached"
    assert {(gap["kind"], gap["name"]) for gap in stamp["not_covered"]} == {
        ("file", str(words)),
        ("machine", "the number of CPUs"),
    }
    again = project("build", *BUILD, expect=0).stderr  # a build in which nothing changed repeats it, too
    assert "up to date" in again
    assert f"reads the file {words}" in again


@pytest.mark.whole("test_a_hermetic_job_fails_if_it_asks_what_no_row_answers")
def test_a_hermetic_recipe_fails_and_builds_once_everything_is_declared(project):
    project("build", *BUILD, expect=0)
    (project.folder / "r.yaml").write_text(f"{RECIPE}hermetic: true\n")
    done = project("build", *BUILD, expect=1)
    assert "the step 'stamp' reads what no row of its key covers, and the recipe is hermetic" in done.stderr
    assert f"reads the file {project.folder / 'words.txt'}" in done.stderr
    (project.folder / "site" / "stamp_package.py").write_text(DECLARED)
    assert "not_covered" not in gaps(project)
    [stamp] = json.loads(project("why", "r.yaml", "stamp", "--read", "--json", expect=0).stdout)
    groups = {group["cover"]: group["names"] for group in stamp["read"]["groups"] if group["cover"] != "allowed"}
    assert groups["code (data)"] == [str(project.folder / "words.txt")]
    assert groups["facts.cpu.count"] == ["the number of CPUs"]
    assert groups["inputs.model"] == ["model.onnx"]
    assert groups["tools.onnx"] == ["onnx"]
    assert "gaps" not in stamp["read"]
    text = project("why", "r.yaml", "stamp", "--read", expect=0).stdout
    assert f"  code (data): {project.folder / 'words.txt'}\n" in text
    assert "  NOT covered: nothing\n" in text


ASKS = {
    'str(Path("/nowhere").exists())': "reads the existence or status of /nowhere",
    "str(os.getgroups())": "reads the user's groups: make it an option of the step",
    "str(os.umask(os.umask(0)))": "reads the umask: make it an option of the step",
    'str(__import__("resource").getrlimit(7))': "reads a limit of processes: make it an option of the step",
    'str(__import__("multiprocessing").get_context("spawn").Process(target=print).start())': "reads the program ",
}


@pytest.mark.sample(1)
@pytest.mark.parametrize("question", ASKS)
def test_a_hermetic_job_fails_if_it_asks_what_no_row_answers(project, question):
    text = '(Path(__file__).parents[1] / f"{which}.txt").read_text() + str(os.cpu_count())'
    (project.folder / "site" / "stamp_package.py").write_text(STEP.replace(text, question))
    (project.folder / "r.yaml").write_text(f"{RECIPE}hermetic: true\n")
    done = project("build", *BUILD, expect=1)
    assert ASKS[question] in done.stderr


CLOCK = STEP.replace("import os\n", "import os, time, locale\n").replace(
    '(Path(__file__).parents[1] / f"{which}.txt").read_text() + str(os.cpu_count())',
    'f"{time.tzname} {locale.getlocale()}"',
)


@pytest.mark.whole("test_a_hermetic_job_fails_if_it_asks_what_no_row_answers")
def test_a_time_zone_and_a_locale_reach_only_a_step_that_names_them(project):
    step = project.folder / "site" / "stamp_package.py"
    step.write_text(CLOCK)
    artifacts = set()
    for place in ({"TZ": "Asia/Tokyo", "LC_ALL": "C"}, {"TZ": "UTC", "LC_ALL": "C.UTF-8"}):
        project.environment |= place
        [stamp] = [
            event
            for event in project.events(*BUILD, "--force", "stamp")
            if event.get("artifact") and event["job"] == "stamp"
        ]
        assert "not_covered" not in stamp
        artifacts.add(stamp["artifact"])
    assert len(artifacts) == 1
    step.write_text(CLOCK.replace("    makes:", '    variables: ClassVar[tuple[str, ...]] = ("TZ",)\n    makes:'))
    project.environment["TZ"] = "Asia/Tokyo"
    project("build", *BUILD, expect=0)
    project.environment["TZ"] = "UTC"
    [change] = project.why("r.yaml")["stamp"]["changes"]
    assert change == {"row": "env.TZ", "old": "Asia/Tokyo", "new": "UTC"}


@pytest.mark.whole("test_a_hermetic_job_fails_if_it_asks_what_no_row_answers")
def test_a_record_without_a_trace_is_made_again_for_a_hermetic_recipe(project):
    (project.folder / "site" / "stamp_package.py").write_text(DECLARED)
    project("build", *BUILD, expect=0)
    for trace in (project.folder / "cache" / "traces").iterdir():
        os.chmod(trace, 0o644)
        trace.write_text("{}")
    done = project("cache", "verify", expect=1)
    assert "the trace is not as it was written" in done.stdout + done.stderr
    assert "the job ran in a version that kept no trace" in project("why", "r.yaml", "stamp", "--read", expect=0).stdout
    assert set(project.states(*BUILD).values()) == {"cached"}
    (project.folder / "r.yaml").write_text(f"{RECIPE}hermetic: true\n")
    [change] = project.why("r.yaml")["fetch"]["changes"]
    assert change["row"] == "trace"
    assert set(project.states(*BUILD).values()) == {"built"}
    assert set(project.states(*BUILD).values()) == {"cached"}


@pytest.mark.whole("test_a_hermetic_job_fails_if_it_asks_what_no_row_answers")
def test_traces_that_no_record_names_are_collected(project):
    project("build", *BUILD, expect=0)
    traces = project.folder / "cache" / "traces"
    assert list(traces.iterdir())
    shutil.rmtree(project.folder / "cache" / "records")
    (project.folder / "cache" / "records").mkdir()
    project("cache", "gc", "--older-than", "1d", expect=0)
    assert not list(traces.iterdir())
