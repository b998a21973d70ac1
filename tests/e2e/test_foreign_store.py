"""A store that came with a cloned repository is not read until the user says so."""

import os
import shutil
import subprocess

import pytest
from program import Program
from stores import put

from engine import api
from engine.errors import UsageError
from engine.store.opening import open_store
from engine.store.store import Store

RECIPE = "name: r\nmodel: {source: model.onnx}\n"
COMMANDS = [
    ("build", "r.yaml"),
    ("build", "r.yaml", "--dry-run"),
    ("build", "r.yaml", "--paranoid"),
    ("why", "r.yaml"),
    ("show", "r.yaml"),
    ("diff", "r.yaml"),
    ("history", "r.yaml"),
    ("report", "r.yaml"),
    ("logs", "r.yaml"),
    ("lock", "r.yaml"),
    ("cache", "ls"),
    ("cache", "stats"),
    ("cache", "verify"),
    ("cache", "gc"),
    ("cache", "export", "r.yaml", "-o", "r.tar"),
    ("cache", "push", "r.yaml", "--remote", "file:///nowhere"),
    ("serve", "r.yaml"),
    ("prove", "r.yaml"),
    ("publish", "r.yaml", "file:///nowhere"),
    ("doctor", "--bundle", "results.tar.gz"),
]
POISON = "POISON"


@pytest.fixture
def clone(tmp_path, monkeypatch):
    """A cloned project with a store that somebody else filled: a record, a log, a note and a head."""
    project = tmp_path / "clone"
    project.mkdir()
    (project / "pyproject.toml").write_text("")
    (project / "r.yaml").write_text(RECIPE)
    (project / "model.onnx").write_bytes(b"")
    store = Store(project / "cache")
    record = put(store, {"step": "x"}, {"model.onnx": POISON}, log=POISON.encode(), job="fetch")
    store.leave()
    monkeypatch.chdir(project)
    (project / "cache" / "id").unlink(missing_ok=True)
    shutil.rmtree(tmp_path / "state", ignore_errors=True)
    program = Program(project)
    del program.environment["RECIPE_TRUST_CACHE"]
    program.environment["XDG_STATE_HOME"] = str(tmp_path / "state")
    assert record
    return program


def content(folder):
    return {str(path.relative_to(folder)): path.stat().st_mtime_ns for path in folder.rglob("*")}


@pytest.mark.sample(3)
@pytest.mark.parametrize("words", COMMANDS, ids=" ".join)
def test_no_command_reads_it(clone, words):
    before = content(clone.folder / "cache")
    done = clone(*words, expect=2)
    assert "is not yours: nothing in it was read" in done.stderr
    assert "recipe cache trust" in done.stderr
    assert POISON not in done.stdout + done.stderr
    assert content(clone.folder / "cache") == before


@pytest.mark.parametrize("function", [api.build, api.why, api.show, api.reach, api.session])
def test_no_python_function_reads_it(clone, function, monkeypatch):
    monkeypatch.delenv("RECIPE_TRUST_CACHE")
    monkeypatch.setenv("XDG_STATE_HOME", clone.environment["XDG_STATE_HOME"])
    before = content(clone.folder / "cache")
    with pytest.raises(UsageError, match="is not yours: nothing in it was read"):
        function([clone.folder / "r.yaml"])
    assert content(clone.folder / "cache") == before


def test_the_system_calls_show_that_only_the_number_is_opened(clone, tmp_path):
    if shutil.which("strace") is None:
        pytest.skip("strace is not installed")
    log = tmp_path / "calls"
    import sys

    command = ["strace", "-f", "-e", "trace=open,openat", "-o", log, sys.executable, "-m", "engine", "build", "r.yaml"]
    subprocess.run(command, cwd=clone.folder, env=clone.environment, capture_output=True, check=False)
    opened = [line for line in log.read_text().splitlines() if f"{clone.folder}/cache/" in line]
    assert opened
    assert [line for line in opened if not ("/cache/id" in line or "/cache/format" in line)] == []


def test_check_reads_no_store(clone):
    done = clone("check", "r.yaml")
    assert POISON not in done.stdout + done.stderr
    assert "is not yours" not in done.stderr


def test_after_cache_trust_it_is_used(clone):
    assert str(clone.folder / "cache") in clone("cache", "trust", str(clone.folder), expect=0).stdout
    assert "fetch" in clone("cache", "ls", expect=0).stdout
    clone("cache", "trust", "--remove", str(clone.folder / "cache"), expect=0)
    clone("cache", "ls", expect=2)


def test_a_ci_trusts_what_it_restores(clone):
    clone.environment["RECIPE_TRUST_CACHE"] = "1"
    assert "fetch" in clone("cache", "ls", expect=0).stdout


def test_a_store_of_ones_own_joins_by_itself_and_a_copy_does_not(clone, monkeypatch):
    monkeypatch.delenv("RECIPE_TRUST_CACHE")
    monkeypatch.setenv("XDG_STATE_HOME", clone.environment["XDG_STATE_HOME"])
    own = clone.folder / "own"
    put(open_store(own), {"step": "x"}, {"a": "A"}, job="mine")
    assert "mine" in clone("cache", "ls", "--cache", str(own), expect=0).stdout
    moved = own.rename(clone.folder / "moved")
    assert "mine" in clone("cache", "ls", "--cache", str(moved), expect=0).stdout
    shutil.copytree(moved, clone.folder / "copied", copy_function=shutil.copy2)
    clone("cache", "ls", "--cache", str(clone.folder / "copied"), expect=2)


def test_a_link_to_a_foreign_store_is_no_store_of_ones_own(clone):
    (clone.folder / "link").symlink_to(clone.folder / "cache")
    clone("cache", "ls", "--cache", "link", expect=2)


def test_an_empty_folder_of_another_user_is_used_after_cache_trust(clone):
    if os.geteuid() != 0:
        pytest.skip("only root can make a folder of another user")
    empty = clone.folder / "empty"
    empty.mkdir()
    os.chown(empty, 12345, 12345)
    assert "belongs to another user" in clone("why", "r.yaml", "--cache", "empty", expect=2).stderr
    assert list(empty.iterdir()) == []
    clone("cache", "trust", "empty", expect=0)
    assert "belongs to" not in clone("why", "r.yaml", "--cache", "empty").stderr
    assert (empty / "format").is_file()


def test_cache_trust_needs_a_store_or_an_empty_folder(clone):
    assert "there is no store at" in clone("cache", "trust", str(clone.folder.parent), expect=2).stderr
    assert "there is no store at" in clone("cache", "trust", "nothing", expect=2).stderr
