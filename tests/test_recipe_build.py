"""The package `recipe_build`: what it offers, its version and its types, and what its modules offer."""

import importlib
import subprocess
import sys
from importlib import metadata

import pytest

import engine
import recipe_build
from engine import api
from engine.text import distribution

MODULES = ("step", "runtimes", "tasks", "testing")


def test_its_functions_are_those_of_the_program_and_are_listed():
    assert {*engine.__all__, "__version__", "step", "runtimes", "tasks", "testing"} <= {*dir(recipe_build)}
    assert all(getattr(recipe_build, name) is getattr(api, name) for name in recipe_build.__all__)
    assert sorted(recipe_build.__all__) == sorted(engine.__all__)


def test_the_program_the_package_and_its_metadata_have_one_version():
    assert recipe_build.__version__ == metadata.version(distribution.NAME)
    assert distribution.running() == f"recipe {recipe_build.__version__}"


@pytest.mark.parametrize("name", MODULES)
def test_a_module_offers_the_same_classes_under_both_names(name):
    own, offered = importlib.import_module(f"engine.{name}"), importlib.import_module(f"recipe_build.{name}")
    assert offered.__all__ == own.__all__
    assert all(getattr(offered, each) is getattr(own, each) for each in own.__all__)


def test_a_name_that_is_not_there_is_the_usual_error():
    with pytest.raises(ImportError, match="cannot import name 'bulid'"):
        exec("from recipe_build import bulid")
    with pytest.raises(ModuleNotFoundError, match=r"recipe_build\.bulid"):
        importlib.import_module("recipe_build.bulid")
    with pytest.raises(AttributeError, match="bulid"):
        recipe_build.bulid  # noqa: B018


def test_an_import_of_the_package_is_light():
    text = "import sys, recipe_build; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", text], capture_output=True, text=True, check=True)
    assert not {"pydantic", "networkx", "importlib.metadata"} & {*done.stdout.split()}


@pytest.mark.slow
@pytest.mark.whole("mypy checks the whole program in .ci/run")
def test_mypy_knows_the_types(tmp_path):
    text = (
        "import recipe_build\nfrom recipe_build import build\nfrom recipe_build.step import Step\n"
        "from recipe_build.testing import run_step\nfrom recipe_build.tasks import Task\n"
        "reveal_type(build)\nreveal_type(recipe_build.show('a.yaml'))\nreveal_type(Step)\nreveal_type(Task)\n"
        "reveal_type(run_step)\nreveal_type(recipe_build.__version__)\nreveal_type(recipe_build.step.Step)\n"
        "recipe_build.bulid\n"
    )
    (tmp_path / "script.py").write_text(text)
    command = [sys.executable, "-m", "mypy", "--strict", "--follow-imports=silent", str(tmp_path / "script.py")]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    lines = done.stdout.splitlines()
    [error] = [line for line in lines if "error:" in line and "script.py" in line]
    assert 'Module has no attribute "bulid"' in error
    revealed = [line.split("note: ")[1] for line in lines if "Revealed" in line]
    assert "engine.events.Finished" in revealed[0]
    assert "list[engine.builder.summary.Summary]" in revealed[1]
    assert "engine.step.Step" in revealed[2]
    assert '"str"' in revealed[5]
    assert revealed[6] == revealed[2]
    assert not [line for line in revealed if '"Any"' in line]
