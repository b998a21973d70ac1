"""The program under test, run as a user would run it, and a temporary project to run it in."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
RECIPE = "recipes/minilm_cpu.yaml"


def environment(*import_path: Path) -> dict[str, str]:
    """Return the environment variables for the program, with more folders on the import path.

    The program's own settings (`RECIPE_...`) are removed, except the place of the Triton server. The variable
    PYTHONDONTWRITEBYTECODE is removed, too: without bytecode files, each process compiles all modules. The source tree
    is added to the import path only if the program is not installed.
    """
    ours = {name for name in os.environ if name.startswith("RECIPE_")} - {"RECIPE_TRITON_VENV"}
    kept = {name: value for name, value in os.environ.items() if name not in {*ours, "PYTHONDONTWRITEBYTECODE"}}
    folders = [*map(str, import_path), *filter(None, [os.environ.get("PYTHONPATH")])]
    if not _located(kept):
        folders.append(str(ROOT))
    return {**kept, **({"PYTHONPATH": os.pathsep.join(folders)} if folders else {})}


def command() -> list[str]:
    """Return the console script of this interpreter's environment, or `python -m engine` if there is no script."""
    script = Path(sys.executable).with_name("recipe")
    return [str(script)] if script.is_file() else [sys.executable, "-m", "engine"]


def described() -> str:
    """Return a text that says how the program is run and how it was installed."""
    how = "the console script" if len(command()) == 1 else "`python -m engine`"
    place = Path(_located(environment()))
    installed = any(part in {"site-packages", "dist-packages"} for part in place.parts)
    return f"recipe {_version()} through {how}, {'a regular install' if installed else 'run from its source tree'}"


def project(folder: Path) -> None:
    """Make `folder` a project with copies of this project's recipes, so that the clone does not change."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "pyproject.toml").touch()
    if not (folder / "recipes").is_dir():
        shutil.copytree(ROOT / "recipes", folder / "recipes")


def events(output: bytes) -> list[dict]:
    """Return the events that a build with --json printed."""
    return [json.loads(line) for line in output.splitlines() if line.startswith(b'{"event"')]


def _located(variables: Mapping[str, str]) -> str:
    """Return the folder of the package `engine` as another process finds it; an empty text if there is none."""
    code = "import importlib.util as u; s = u.find_spec('engine'); print(s.submodule_search_locations[0] if s else '')"
    done = subprocess.run(
        [sys.executable, "-c", code], env=dict(variables), cwd="/", capture_output=True, text=True, check=True
    )
    return done.stdout.strip()


def _version() -> str:
    done = subprocess.run(
        [*command(), "--version"], env=environment(), cwd="/", capture_output=True, text=True, check=True
    )
    return done.stdout.strip().removeprefix("recipe").strip(", ")
