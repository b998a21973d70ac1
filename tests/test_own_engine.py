"""A user's own `engine.py`, or folder `engine/`, beside the recipe or the script: program and import work."""

import os
import subprocess
import sys
from pathlib import Path

import graphs
import onnx
import pytest

SCRIPT = Path(sys.executable).with_name("recipe")
WAYS = {"recipe": [str(SCRIPT)], "python -m": [sys.executable, "-m", "recipe_build"]}
RECIPE = "name: net\nmodel: {source: net.onnx}\nprofiles: [{batch: [1, 2, 4]}]\n"


@pytest.fixture(params=["engine.py", "engine/__init__.py", "engine/x.py"])
def own(request, tmp_path):
    """Return the folder of a user with an `engine` of their own."""
    place = tmp_path / request.param
    place.parent.mkdir(exist_ok=True)
    place.write_text('raise RuntimeError("it must not run")')
    return tmp_path


@pytest.fixture
def project(tmp_path):
    """Return a project with a model, a recipe, and a folder `engine/` of the user."""
    (tmp_path / "engine").mkdir()
    (tmp_path / "engine" / "__init__.py").write_text('raise RuntimeError("it must not run")')
    (tmp_path / "pyproject.toml").touch()
    (tmp_path / "r.yaml").write_text(RECIPE)
    onnx.save(graphs.layers(), tmp_path / "net.onnx")
    return tmp_path


def run(command, folder, path=None):
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    environment |= {"PYTHONPATH": path} if path else {}
    return subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)


def python(text, folder, path=None):
    """Run a script that lies in a folder, whose folder Python puts first on the import path."""
    (folder / "script.py").write_text(text)
    return run([sys.executable, "script.py"], folder, path)


@pytest.mark.parametrize("path", [None, "."], ids=["beside it", "PYTHONPATH"])
@pytest.mark.parametrize("way", WAYS)
@pytest.mark.sample(4)
def test_the_program_works_beside_it_and_where_the_import_path_has_it_first(own, way, path):
    if way == "recipe" and not SCRIPT.is_file():
        pytest.skip(f"{SCRIPT} is not installed")
    done = run([*WAYS[way], "gpus", "T4"], own, path)
    assert (done.returncode, done.stderr) == (0, "")
    assert "T4" in done.stdout


@pytest.mark.sample(1)
def test_a_script_beside_it_imports_this_package(own):
    done = python("import recipe_build; print(recipe_build.check.__module__)", own)
    assert done.stdout == "engine.api\n", done.stderr


@pytest.mark.parametrize("path", [None, "."], ids=["script", "PYTHONPATH"])
@pytest.mark.sample(1)
def test_the_workers_of_a_build_run_this_package(project, path):
    done = python("import recipe_build; print(recipe_build.build('r.yaml', to='fuse').state)", project, path)
    assert done.stdout == "built\n", done.stderr


def test_a_process_that_a_step_spawns_runs_this_package(project):
    text = (
        "import sys, recipe_build\nfrom engine.builder import zygote_loader\n"
        "sys.argv[1:] = zygote_loader.command('bytecode', sys.path)[4:]\n"
        "import runpy\nrunpy.run_path(zygote_loader.__file__, run_name='__mp_main__')\n"
        "print(sys.modules['engine'].__file__, sys.path[0])\n"
    )
    done = python(text, project)
    assert done.stdout.split() == [str(Path(__file__).parents[1] / "engine" / "__init__.py"), str(project)], done.stderr


def test_another_engine_that_is_imported_already_is_one_clear_error(project):
    (project / "engine" / "__init__.py").write_text("")
    done = python("import engine, recipe_build", project)
    [error] = [line for line in done.stderr.splitlines() if line.startswith("ImportError: ")]
    assert error == (
        f"ImportError: another `engine` is imported already, {project / 'engine'}: "
        "import recipe_build before it, or rename it"
    )
