"""`recipe build --watch`: a round for each change of a file that the build reads, and an end by Ctrl-C."""

import signal
import subprocess
import sys
import time

import graphs
import onnx
import pytest
from program import Program

RECIPE = "name: net\nmodel: {source: net.onnx}\nprofiles: [{batch: [1, 2, 4]}]\n"
_SECONDS = 120


@pytest.fixture
def watch(tmp_path):
    """Start a watching build in a project, and return a function that waits for a text in its next output."""
    before = signal.signal(
        signal.SIGINT, signal.default_int_handler
    )  # where tests run in the background, it is ignored
    (tmp_path / "pyproject.toml").touch()
    (tmp_path / "r.yaml").write_text(RECIPE)
    onnx.save(graphs.layers(), tmp_path / "net.onnx")
    words = [sys.executable, "-m", "recipe_build", "build", "r.yaml", "--to", "fetch", "--watch"]
    with (tmp_path / "printed").open("w") as printed:
        process = subprocess.Popen(words, cwd=tmp_path, env=Program(tmp_path).environment, stderr=printed)
    read = 0

    def shows(text):
        nonlocal read
        end = time.monotonic() + _SECONDS
        while time.monotonic() < end:
            new = (tmp_path / "printed").read_text()[read:]
            if text in new:
                read += new.index(text) + len(text)
                return new
            time.sleep(0.1)
        raise AssertionError(f"{text!r} is not in {new!r}")

    yield process, shows, tmp_path
    process.kill()
    process.wait()
    signal.signal(signal.SIGINT, before)


@pytest.mark.slow
@pytest.mark.whole("test_a_build_that_is_interrupted_ends_with_130")
def test_each_change_is_a_round_also_after_a_wrong_recipe(watch):
    process, shows, folder = watch
    shows("built in")
    (folder / "notes.txt").write_text("no file of the build")
    time.sleep(2)
    (folder / "r.yaml").write_text(RECIPE + "# a comment\n")
    printed = shows("up to date in")
    assert "watching: r.yaml changed\n" in printed
    assert "notes.txt" not in printed
    (folder / "r.yaml").write_text(RECIPE + "bogus: 1\n")
    assert "watching: r.yaml changed\n" in shows("unknown field `bogus`")
    (folder / "r.yaml").write_text(RECIPE)
    assert "watching: r.yaml changed\n" in shows("up to date in")
    process.send_signal(signal.SIGINT)
    assert process.wait(_SECONDS) == 130
    assert "Traceback" not in (folder / "printed").read_text()


@pytest.mark.slow
def test_a_build_that_is_interrupted_ends_with_130(watch):
    process, _, _ = watch
    time.sleep(1)
    process.send_signal(signal.SIGINT)
    assert process.wait(_SECONDS) == 130


def test_it_is_refused_beside_what_builds_nothing(tmp_path):
    done = Program(tmp_path)("build", "r.yaml", "--watch", "--dry-run", expect=2)
    assert "not allowed with argument" in done.stderr
