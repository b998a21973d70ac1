"""The command line as a whole: its help, and its commands."""

import subprocess
import sys

from engine.commands import COMMANDS


def test_the_command_line_works_without_docstrings():
    command = [sys.executable, "-OO", "-m", "engine"]
    assert subprocess.run([*command, "steps"], capture_output=True, check=False).returncode == 0
    done = subprocess.run([*command, "--help"], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert all(name in done.stdout for name in COMMANDS)
