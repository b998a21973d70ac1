"""The exit code of a program that Ctrl-C ends; e2e/test_tiny.py has other codes, and what an error prints."""

import signal
import subprocess
import sys
from types import SimpleNamespace

import pytest

from engine import cli, commands
from engine.system import interrupts

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


@pytest.mark.parametrize("options", [(), ("--debug",)])
def test_a_build_inside_of_another_program_hands_interruptions_back_however_it_ends(options, tmp_path, monkeypatch):
    monkeypatch.setattr(commands, "parse", lambda _: SimpleNamespace(run=fail))
    before = {each: signal.getsignal(each) for each in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)}
    signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        with pytest.raises(ValueError if options else SystemExit):
            cli.main(["build", str(tmp_path / "r.yaml"), *options])
        assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
        assert interrupts.install(), "the earlier handling goes on"
    finally:
        interrupts.restore()
        for number, handler in before.items():
            signal.signal(number, handler)


def fail(_):
    interrupts.install()
    raise ValueError
