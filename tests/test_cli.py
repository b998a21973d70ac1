"""The exit code of a program that Ctrl-C ends; e2e/test_tiny.py has other codes, and what an error prints."""

import subprocess
import sys

STOPPED = """
from engine import cli, commands

def parse(words):
    exec("raise KeyboardInterrupt")  # as an import that makes the methods of a dataclass

commands.parse = parse
cli.main()
"""


def test_ctrl_c_while_an_import_makes_a_class_from_text_exits_with_130_too(tmp_path):
    (tmp_path / "stopped.py").write_text(STOPPED)
    command = [sys.executable, "-m", "stopped", "why", "recipe.yaml"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (130, "interrupted\n")
