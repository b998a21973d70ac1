"""Builds in which only sources changed, against builds that plan everything anew: the same keys, records and states."""

import json
import os
import random
import shutil
import subprocess
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path

import fresh_process
import pytest
from tiny_project import HEAVY

from engine import cli
from engine.builder import plan_cache
from engine.testing import install

STEPS = '''
"""Steps that read, join and cut texts."""
from pathlib import Path
from typing import ClassVar

from engine.step import Source, Step


class Read(Step):
    makes: ClassVar[str] = "text"
    number: int
    own: Source | None = None
    common: Source | None = None

    @classmethod
    def for_recipe(cls, recipe):
        step = super().for_recipe(recipe)
        home, number = f"{Path(recipe.model.source).parent}/in", step.number
        return cls(number=number, own=Source(uri=f"{home}/{number}"), common=Source(uri=f"{home}/c{number % 3}"))

    def run(self, out, *, own, common):
        (out / "text").write_text(own.read_text() + common.read_text())


class First(Step):
    makes: ClassVar[str] = "letter"

    def run(self, out, *, text):
        (out / "letter").write_text((text / "text").read_text()[:1])


class Join(Step):
    makes: ClassVar[str] = "joined"
    number: int
    beside: Source | None = None

    @classmethod
    def for_recipe(cls, recipe):
        step = super().for_recipe(recipe)
        home = f"{Path(recipe.model.source).parent}/in"
        return cls(number=step.number, beside=Source(uri=f"{home}/j{step.number % 2}"))

    def run(self, out, *, letter, beside):
        (out / "joined").write_text((letter / "letter").read_text() * 2 + beside.read_text())
'''
RECIPE = """\
name: v-${{steps.read.number}}
model: {{source: model.onnx}}
steps: {{read: {{number: 0}}, first: {{}}, join: {{number: {number}}}}}
matrix:
  steps.read.number: [{numbers}]
"""
COUNT = 4
UNREAD = {str(COUNT), "j0"}
"""The sources that no variant reads."""


@dataclass
class Built:
    code: int
    events: list[dict]
    resumed: list[bool] = field(default_factory=list)
    changed: list[list[str]] = field(default_factory=list)
    """The names of the changed files, for each comparison with a snapshot that found changes."""

    @property
    def ends(self):
        return {(event["recipe"], event["job"]): event for event in self.events if event["event"] == "end"}

    @property
    def rebuilt(self):
        return {job for job, event in self.ends.items() if event["state"] == "built"}

    @property
    def results(self):
        return {job: (event["key"], event["artifact"]) for job, event in self.ends.items()}


class Project:
    def __init__(self, folder):
        self.folder = folder
        (folder / "packages").mkdir()
        site = folder / "site"
        for name in ("Read", "First", "Join"):
            install(site, "recipe.steps", name.lower(), f"resume_steps:{name}")
        (site / "resume_steps.py").write_text(STEPS)
        for empty in ("pyproject.toml", "model.onnx"):
            (folder / empty).touch()
        self.recipe(COUNT)
        for name in self.sources:
            self.write(name, f"{name} at first\n")

    sources = (*(str(number) for number in range(COUNT + 1)), "c0", "c1", "c2", "j0", "j1")

    def recipe(self, count, number=1):
        (self.folder / "r.yaml").write_text(
            RECIPE.format(numbers=", ".join(str(each) for each in range(count)), number=number)
        )

    def path(self, name):
        return self.folder / "in" / name

    def write(self, name, text):
        self.path(name).parent.mkdir(exist_ok=True)
        self.path(name).write_text(text)

    def build(self, *options):
        """Build in a fork of this process, which has imported the program already."""
        time.sleep(0.05)  # past the clock's tick: an input that changed in this tick allows no snapshot
        output = self.folder / "output"
        child = os.fork()
        if child == 0:
            _build(self.folder, output, ["build", "r.yaml", "--to", "join", "--json", "-j", "1", *options])
        code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        comparisons = [json.loads(line) for line in Path(f"{output}.resumed").read_text().splitlines()]
        talk = output.read_text()
        assert "Traceback" not in talk, talk
        events = [json.loads(line) for line in talk.splitlines()]
        return Built(code, events, [each["resumed"] for each in comparisons], [each["changed"] for each in comparisons])

    def edit_steps(self, *changes):
        """Replace texts in the module of the steps, each once."""
        steps = self.folder / "site" / "resume_steps.py"
        text = steps.read_text()
        for old, new in changes:
            assert old in text
            text = text.replace(old, new, 1)
        steps.write_text(text)

    def build_anew(self):
        """Build without a snapshot and a plan cache, as a builder that knows nothing of earlier plans."""
        shutil.rmtree(self.folder / "cache" / "snapshots")
        shutil.rmtree(self.folder / "cache" / "plans")
        return self.build_and_keep()

    def build_and_keep(self):
        """Build until there is a snapshot: a build keeps none if another process changes a watched folder."""
        built = self.build()
        for _ in range(3):
            if not any((self.folder / "cache" / "snapshots").iterdir()):
                self.build()
        return built


def _import_path():
    """Return the import path without the folders of tests, in which other processes compile modules meanwhile."""
    tests = str(Path(__file__).parent.parent)
    return [entry for entry in sys.path if entry and not entry.startswith(tests)]


def _build(folder, output, words):
    code = 1
    try:
        os.chdir(folder)
        fresh_process.forget()
        # Some packages add a folder with `..` in its path, for example `onnxruntime.transformers`.
        sys.path[:] = [str(folder / "site"), *_import_path(), str(folder / "site" / ".." / "packages")]
        for name in [name for name in os.environ if name.startswith(("RECIPE_", "PYTEST_"))]:
            del os.environ[name]  # pytest changes a variable before each phase of a test
        os.environ["RECIPE_TRUST_CACHE"] = "1"  # tests copy stores
        handle = os.open(output, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
        os.dup2(handle, 1)
        os.dup2(handle, 2)
        sys.stdout, sys.stderr = os.fdopen(1, "w"), os.fdopen(2, "w")
        answers = open(f"{output}.resumed", "w")  # noqa: SIM115 - until the process ends
        original = plan_cache.changed_build

        def changed_build(changes):
            build = original(changes)
            if changes is not None:
                answers.write(json.dumps({"resumed": build is not None, "changed": list(changes.names)}) + "\n")
            return build

        plan_cache.changed_build = changed_build
        cli.main(words)
    except SystemExit as ended:
        code = int(ended.code or 0)
    finally:
        sys.stdout.flush()
        answers.close()
        os._exit(code)


@pytest.fixture
def project(tmp_path):
    first = Project(tmp_path)
    assert first.build_and_keep().code == 0
    return first


def rename_over(project, name, text):
    project.write("fresh", text)
    project.path("fresh").rename(project.path(name))


def keep_the_times(project, name, text):
    before = project.path(name).stat()
    project.write(name, text)
    os.utime(project.path(name), ns=(before.st_atime_ns, before.st_mtime_ns))


def touch(project, name, text):
    del text
    project.path(name).touch()


CHANGES = (Project.write, rename_over, keep_the_times, touch)


def holds(project, chance):
    """Change some sources, build, and hold the answers against a builder that plans anew."""
    chosen = chance.sample(project.sources, chance.choice((1, 1, 2, 4)))
    for name in chosen:
        chance.choice(CHANGES)(project, name, chance.choice(("one\n", "two\n", f"{chance.random()}\n")))
    built = project.build()
    assert built.code == 0
    assert built.resumed == [True] or UNREAD.issuperset(chosen), built.changed
    again = project.build()
    assert not again.rebuilt
    assert not again.resumed, "no snapshot answered"
    assert again.results == built.results
    if chance.random() < 0.5:
        anew = project.build_anew()
        assert not anew.rebuilt
        assert anew.results == built.results
        assert anew.resumed == []


def test_changed_sources_give_the_keys_and_records_that_a_new_plan_gives(project, request):
    chance = random.Random(13)
    for _ in range(40 if request.config.getoption("--whole") else 2):
        holds(project, chance)


def test_only_the_jobs_behind_a_changed_source_run_and_equal_output_stops_them(project):
    project.write("1", "1 again\n")
    built = project.build()
    assert built.resumed == [True], built.changed
    assert built.rebuilt == {("v-1", "read"), ("v-1", "first")}  # the first letter is the same
    project.write("j1", "other\n")
    project.write("2", "x\n")
    built = project.build()
    assert built.resumed == [True], built.changed
    assert built.rebuilt == {("v-2", "read"), ("v-2", "first"), *((f"v-{number}", "join") for number in range(COUNT))}
    assert [event["event"] for event in built.events].count("plan") == COUNT
    assert len(built.ends) == 3 * COUNT


def test_a_source_in_a_package_keeps_the_plan_although_tools_lie_in_folders_of_packages(project):
    project.edit_steps(
        ('f"{home}/c{number % 3}"', '"python:weights_of_read/part"'),
        ("    number: int", '    tools: ClassVar[tuple[str, ...]] = ("networkx",)\n    number: int'),
    )
    package = project.folder / "site" / "weights_of_read"
    package.mkdir()
    (package / "__init__.py").touch()
    (package / "part").write_text("first")
    assert project.build().code == 0
    (package / "part").write_text("second")
    built = project.build()
    assert (built.code, built.resumed) == (0, [True]), built.changed
    assert {job for _, job in built.rebuilt} == {"read", "first"}
    assert project.build_anew().results == built.results


def test_the_builder_imports_no_slow_package_for_a_changed_source(project):
    environment = {name: value for name, value in os.environ.items() if not name.startswith("RECIPE_")}
    environment["RECIPE_TRUST_CACHE"] = "1"
    environment["PYTHONPATH"] = os.pathsep.join([str(project.folder / "site"), *_import_path()])
    words = ["-X", "importtime", "-P", "-m", "engine", "build", "r.yaml", "--to", "join", "--json"]

    def run():
        return subprocess.run(
            [sys.executable, *words], cwd=project.folder, env=environment, capture_output=True, text=True, check=True
        )

    run()  # keeps a snapshot and a plan cache for this import path
    project.write("1", "1 again\n")
    done = run()
    assert '"state": "built"' in done.stdout
    imported = {line.rpartition("|")[2].strip() for line in done.stderr.splitlines()}
    assert "engine.builder.loop" in imported
    assert not imported & (HEAVY | {"engine.step", "engine.api", "importlib.metadata"})


def damages_the_plan(project):
    [plan] = (project.folder / "cache" / "plans").iterdir()
    plan.write_bytes(plan.read_bytes()[:-1] + b"x")


def takes_an_older_plan(project):
    [plan] = (project.folder / "cache" / "plans").iterdir()
    older = plan.read_bytes()
    project.write("2", "before\n")
    project.build()
    plan.write_bytes(older)


def replaces_a_source_by_a_folder(project):
    project.path("c0").unlink()
    project.path("c0").mkdir()


def damages_an_artifact(project):
    path = next((project.folder / "cache" / "artifacts").rglob("letter"))
    path.chmod(0o644)
    path.write_text("?")


DOUBTS = {
    "other code": lambda project: project.edit_steps(("[:1]", "[:2]")),
    "another recipe": lambda project: project.recipe(COUNT, number=0),
    "a damaged plan": damages_the_plan,
    "an older plan": takes_an_older_plan,
    "a folder in place of a source": replaces_a_source_by_a_folder,
    "a record that is gone": lambda project: next((project.folder / "cache" / "records").iterdir()).unlink(),
    "a damaged artifact": damages_an_artifact,
}


def test_a_source_that_a_step_reads_when_it_is_planned_is_planned_anew(project):
    reading = "number = step.number + 0 * len(Path(home.removeprefix('file:'), str(step.number)).read_text())"
    project.edit_steps((", step.number\n", f", 0\n        {reading}\n"))
    assert project.build().code == 0
    project.write("c0", "no step reads this when it is planned\n")
    assert project.build().resumed == [True]
    project.write("1", "1 again\n")
    assert project.build().resumed == [False]


@pytest.mark.whole("test_changed_sources_give_the_keys_and_records_that_a_new_plan_gives")
def test_what_a_step_asks_when_it_is_planned_or_imported_is_watched_though_no_source_names_it(project, monkeypatch):
    asking = (
        "\n        folder = Path(home.removeprefix('file:'))"
        "\n        number += len((folder / 'settings').read_text()) + len(list((folder / 'more').iterdir()))"
        "\n        number += (folder / 'switch').exists() + len(os.environb.get(b'OF_THE_STEP', b'')) + AT_IMPORT"
    )
    at_import = f"AT_IMPORT = len(Path({str(project.path('imported'))!r}).read_text())\n"
    project.edit_steps(
        (", step.number\n", f", step.number{asking}\n"),
        ("\n\nclass Read", f"\nimport os\n{at_import}\n\nclass Read"),
    )
    project.path("more").mkdir()
    for name in ("settings", "imported"):
        project.write(name, "")
    for number in range(5, 25):
        project.write(str(number), "for the numbers that the changes give to the last variant\n")
    assert project.build().code == 0
    assert project.build().resumed == [], "no snapshot answered"
    for name in ("settings", "more/first", "switch"):
        project.write(name, "x")
        built = project.build()
        assert built.resumed == ([] if name == "switch" else [False])
        assert ("v-3", "read") in built.rebuilt
        assert project.build_anew().results == built.results
    monkeypatch.setenv("OF_THE_STEP", "x" * 9)
    assert ("v-3", "read") in project.build().rebuilt
    files = [path.read_bytes() for path in (project.folder / "cache" / "snapshots").iterdir()]
    assert files
    assert not any(b"x" * 9 in content for content in files), "a variable may hold a secret"
    monkeypatch.delenv("OF_THE_STEP")
    assert project.build().resumed == [], "the environment is another one"
    assert project.build().resumed == [], "a snapshot answers"
    project.write("imported", "ten marks!")
    assert ("v-3", "read") in project.build().rebuilt
    assert project.build().results == project.build_anew().results


@pytest.mark.whole
@pytest.mark.parametrize("doubt", DOUBTS)
def test_any_other_change_is_planned_anew(project, doubt):
    DOUBTS[doubt](project)
    project.write("1", "1 again\n")
    built = project.build()
    assert built.resumed in ([False], [])
    assert built.code == (1 if doubt == "a folder in place of a source" else 0)
    if built.code == 0:
        assert project.build_anew().results == built.results
