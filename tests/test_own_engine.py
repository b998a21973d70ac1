"""A user's own `engine.py`, or folder `engine/`, beside the recipe: the program works, or one clear error names it."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = Path(sys.executable).with_name("recipe")
WAYS = {"recipe": [str(SCRIPT)], "python -m": [sys.executable, "-m", "recipe_build"]}


@pytest.fixture(params=["engine.py", "engine/__init__.py", "engine/x.py"])
def own(request, tmp_path):
    """Return the folder of a user with an `engine` of their own, and whether Python takes it for a module."""
    place = tmp_path / request.param
    place.parent.mkdir(exist_ok=True)
    place.write_text('raise RuntimeError("it must not run")')
    return tmp_path, not request.param.endswith("x.py")


def run(way, folder, path):
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    environment |= {"PYTHONPATH": path} if path else {}
    command = [*WAYS[way], "gpus", "T4"]
    return subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)


@pytest.mark.parametrize("way", WAYS)
def test_the_program_works_beside_it(own, way):
    if way == "recipe" and not SCRIPT.is_file():
        pytest.skip(f"{SCRIPT} is not installed")
    done = run(way, own[0], None)
    assert (done.returncode, done.stderr) == (0, "")
    assert "T4" in done.stdout


@pytest.mark.parametrize("way", WAYS)
def test_one_error_names_it_where_the_import_path_puts_it_first(own, way):
    if way == "recipe" and (not SCRIPT.is_file() or "recipe_build" not in SCRIPT.read_text()):
        pytest.skip(f"{SCRIPT} is of an earlier version: pip install -e . writes it anew")
    done = run(way, own[0], ".")
    if not own[1]:  # a folder without __init__.py does not hide a package
        assert done.returncode == 0
        return
    assert done.returncode == 2
    assert done.stderr.startswith("error: engine")
    assert "hides the package `engine` of recipe" in done.stderr
    assert "hint: rename it, or take its folder out of PYTHONPATH" in done.stderr
    assert "Traceback" not in done.stderr
