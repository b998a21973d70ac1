"""Completion in a real bash: commands, options, recipes, steps, devices and fields."""

import importlib.util
import os
import shutil
import subprocess
import sys
from functools import partial
from pathlib import Path
from unittest.mock import Mock

import pytest

from engine import commands
from engine.commands import completion
from engine.errors import UsageError

argcomplete = pytest.importorskip("argcomplete", reason="argcomplete is not installed: the extra `completion`")
LINES = (
    ("recipe bui", "build"),
    ("recipe build ti", "tiny.yaml"),
    ("recipe build recipes/o", "recipes/other.yaml"),
    ("recipe build tiny.yaml --to exp", "export"),
    ("recipe build tiny.yaml --keep", "--keep-going"),
    ("recipe build tiny.yaml --set target.dev", "target.device="),
    ("recipe new model --device RTX\\ 4090\\ ", "RTX 4090 D"),
    ("recipe new model --task text-cl", "text-classification"),
    ("recipe cache g", "gc"),
)
ASK = """
eval "$(recipe completion bash)"
COMP_LINE=$1; COMP_POINT=${#COMP_LINE}; COMP_TYPE=9
_python_argcomplete recipe
printf '%s\\n' "${COMPREPLY[@]}"
"""


@pytest.fixture
def folder(tmp_path):
    """Return a folder with two recipes and a program `recipe`."""
    (tmp_path / "recipes").mkdir()
    for name in ("tiny.yaml", "recipes/other.yaml"):
        (tmp_path / name).touch()
    program = tmp_path / "bin" / "recipe"
    program.parent.mkdir()
    program.write_text(f'#!/bin/sh\nexec {sys.executable} -m engine "$@"\n')
    program.chmod(0o755)
    return tmp_path


@pytest.mark.parametrize(("line", "completed"), LINES, ids=[line for line, _ in LINES])
def test_a_line_is_completed(line, completed, folder, monkeypatch):
    """In the tests' own process; `test_bash_completes` has a line in bash."""
    monkeypatch.chdir(folder)
    for name, value in {"_ARGCOMPLETE": "1", "COMP_LINE": line, "COMP_POINT": str(len(line)), "COMP_TYPE": "9"}.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("_ARGCOMPLETE_STDOUT_FILENAME", str(folder / "completions"))
    monkeypatch.setattr(argcomplete.CompletionFinder, "_init_debug_stream", Mock())  # it would take a file of pytest
    monkeypatch.setattr(argcomplete, "autocomplete", partial(argcomplete.autocomplete, exit_method=sys.exit))
    with pytest.raises(SystemExit):
        commands.complete(line)
    assert completed in [each.replace("\\", "").strip() for each in (folder / "completions").read_text().split("\v")]


@pytest.mark.parametrize(("line", "completed"), [LINES[2]])
def test_bash_completes(line, completed, folder):
    if shutil.which("bash") is None:
        pytest.skip("this machine has no bash")
    root = Path(commands.__file__).parent.parent.parent
    path = f"{folder / 'bin'}{os.pathsep}{os.environ['PATH']}"
    done = subprocess.run(
        ["bash", "-c", ASK, "bash", line], cwd=folder, capture_output=True, text=True, check=False, timeout=120,
        env={**os.environ, "PATH": path, "PYTHONPATH": str(root)},
    )  # fmt: skip
    assert completed in [each.replace("\\", "").strip() for each in done.stdout.splitlines()], done.stderr


@pytest.mark.parametrize("shell", completion.SHELLS)
def test_each_shell_has_a_script(shell, capsys):
    commands.parse(["completion", shell]).run(commands.parse(["completion", shell]))
    assert "recipe" in capsys.readouterr().out


def test_without_the_library_the_error_says_what_to_install(monkeypatch):
    monkeypatch.setattr(importlib.util, "find_spec", lambda _name: None)
    with pytest.raises(UsageError) as refused:
        completion.run(commands.parse(["completion", "bash"]))
    assert refused.value.hint == "pip install 'recipe-build[completion]'"
