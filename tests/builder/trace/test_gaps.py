"""A job that loads code or data outside its key fails, whichever way it loads it."""

import importlib
import sys

import pytest
import small_builds

from engine.events import Ended

HEAD = """
import importlib, importlib.util, os, sys
from pathlib import Path
from typing import ClassVar
from engine.step import Step
HERE = Path(__file__).parent

def by_file(name):
    spec = importlib.util.spec_from_file_location("by_file", HERE / name)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module

def by_name(name):
    return importlib.import_module(f"guarded_package.{name}")
"""
STEP = """
class {name}(Step):
    makes: ClassVar[str] = "{name}"

    def code_used(self):
        return {declared}

    def run(self, out: Path) -> None:
        {body}
"""
INSIDE = {
    "ComputedName": "by_name('one')",
    "FromFile": "by_file('two.py')",
    "Forgotten": "del sys.modules[by_name('three').__name__]",
    "Child": "pid = os.fork()\n        if pid == 0:\n            by_name('four')\n            os._exit(0)\n"
             "        os.waitpid(pid, 0)",
    "Words": "(HERE / 'words.txt').read_text()",
}  # fmt: skip
FILES = {"ComputedName": "one.py", "FromFile": "two.py", "Forgotten": "three.py", "Child": "four.py",
         "Words": "words.txt", "Early": "five.py"}  # fmt: skip


@pytest.fixture(scope="module")
def ended(tmp_path_factory):
    """Build steps of a package, and return how each ended, by the name of its class."""
    site, project = tmp_path_factory.mktemp("site"), tmp_path_factory.mktemp("project")
    package = site / "guarded_package"
    package.mkdir()
    for file in ("__init__.py", *FILES.values(), "six.py"):
        (package / file).write_text("")
    steps = [STEP.format(name=name, declared=(), body=body) for name, body in INSIDE.items()]
    declared = STEP.format(name="Declared", declared=("guarded_package.six",), body="by_name('six')")
    (package / "step.py").write_text("".join((HEAD, *steps, declared)))
    early = STEP.format(name="Early", declared=(), body="FIVE")
    (package / "early.py").write_text(f"{HEAD}\nFIVE = by_file('five.py')\n{early}")
    sys.path.insert(0, str(site))
    try:
        module = importlib.import_module("guarded_package.step")
        kinds = [getattr(module, name) for name in (*INSIDE, "Declared")]
        kinds.append(importlib.import_module("guarded_package.early").Early)
        variant = small_builds.variant(small_builds.project_in(project), *(kind() for kind in kinds))
        events = small_builds.build(project, variant, keep_going=True)
        names = {kind.step_name(): kind.__name__ for kind in kinds}
        yield {names[event.job]: event for event in events if isinstance(event, Ended)}
    finally:
        sys.path.remove(str(site))
        for name in [name for name in sys.modules if name.partition(".")[0] == "guarded_package"]:
            del sys.modules[name]


@pytest.mark.parametrize("name", FILES)
def test_a_job_fails_that_loads_a_file_of_its_package_which_its_key_does_not_cover(ended, name):
    error = ended[name].error
    assert "uses code or data that its key does not cover" in str(error)
    assert [f"guarded_package/{FILES[name]}" in fact for fact in error.facts] == [True]


def test_a_job_is_built_that_declares_the_modules_which_it_loads_by_name(ended):
    assert (ended["Declared"].state, ended["Declared"].error) == ("built", None)
