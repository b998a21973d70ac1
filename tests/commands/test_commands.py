"""The command line as a whole: its help, and its commands."""

import os
import subprocess
import sys

import pytest

from engine.commands import COMMANDS


def test_the_command_line_works_without_docstrings():
    command = [sys.executable, "-OO", "-m", "engine"]
    assert subprocess.run([*command, "steps"], capture_output=True, check=False).returncode == 0
    done = subprocess.run([*command, "--help"], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert all(name in done.stdout for name in COMMANDS)


@pytest.mark.parametrize(("words", "code"), [(("gpus", "--json"), 0), (("build", "--json", "net.yaml"), 1)])
def test_only_a_command_that_merely_prints_succeeds_without_its_reader(words, code, tmp_path):
    (tmp_path / "pyproject.toml").write_text("")
    (tmp_path / "net.yaml").write_text("name: net\nmodel: {source: net.onnx}\n")
    (tmp_path / "net.onnx").write_bytes(b"no model")
    reader, writer = os.pipe()
    os.close(reader)
    with os.fdopen(writer, "wb") as pipe:
        command = [sys.executable, "-m", "engine", *words]
        done = subprocess.run(command, cwd=tmp_path, stdout=pipe, stderr=subprocess.PIPE, check=False)
    assert (done.returncode, done.stderr) == (code, b"")
