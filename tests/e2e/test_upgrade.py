"""What another version of the program does with the store, the lock and the remote of an older one."""

import io
import json
import shutil
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import replace

import graphs
import onnx
import pytest
import user_caches

from engine import cli, digest
from engine.builder.code import closure
from engine.text import distribution

RECIPE = "name: net\nmodel: {source: net.onnx}\nprofiles: [{batch: [1, 2, 4]}]\n"


OLDER = "recipe 0.0.9"


def run(*words, expect=0):
    """Run the command line in the test's own process, so that a test can choose its version; return what it prints."""
    out, err = io.StringIO(), io.StringIO()
    with pytest.raises(SystemExit) as ended, redirect_stdout(out), redirect_stderr(err):
        cli.main(list(words))
    assert ended.value.code == expect, out.getvalue() + err.getvalue()
    return out.getvalue() + err.getvalue()


def states(*words):
    events = [json.loads(line) for line in run("build", "r.yaml", "--json", *words).splitlines() if line[0] == "{"]
    return {event["job"]: event["state"] for event in events if event["event"] == "end"}


def be_older(patch):
    """Let the program be of another version, in which the code of every step differs."""
    of_step = closure.of_step

    def other(step):
        code = of_step(step)
        return replace(code, digest=digest.of_bytes(f"older {code.digest}".encode()))

    patch.setattr(closure, "of_step", other)
    patch.setattr(distribution, "version", lambda: "0.0.9")


@pytest.fixture(scope="module")
def machine():
    """The variables of a user, and those that tests change."""
    with pytest.MonkeyPatch.context() as patch:
        yield patch


@pytest.fixture(scope="module")
def built(tmp_path_factory, machine):
    """A project that an older version has built, locked and pushed with its signature: do not write into it."""
    folder = tmp_path_factory.mktemp("upgrade")
    for name in ("XDG_CONFIG_HOME", "XDG_CACHE_HOME", "XDG_STATE_HOME"):
        machine.setenv(name, str(folder / name))
    user_caches.with_bytecode(folder / "XDG_CACHE_HOME")
    project = folder / "project"
    project.mkdir()
    machine.chdir(project)
    (project / "pyproject.toml").write_text("")
    (project / "r.yaml").write_text(RECIPE)
    onnx.save(graphs.layers(), project / "net.onnx")
    run("cache", "keygen")
    key = (folder / "XDG_CONFIG_HOME" / "recipe" / "signing.key.pub").read_text().strip()
    machine.setenv("RECIPE_REMOTE", (folder / "remote").as_uri())
    machine.setenv("RECIPE_TRUST", key)
    with pytest.MonkeyPatch.context() as patch:
        be_older(patch)
        assert set(states().values()) == {"built"}
        run("lock", "r.yaml")
    # The files of a real upgrade differ, so no answer of the older version is given again.
    for notes in ("snapshots", "plans"):
        shutil.rmtree(project / "cache" / notes, ignore_errors=True)
    return project


@pytest.fixture
def project(built, tmp_path, monkeypatch):
    """A copy of the project that an older version has built, now in the hands of the present version."""
    shutil.copytree(built, tmp_path / "project")
    monkeypatch.chdir(tmp_path / "project")
    monkeypatch.setenv("RECIPE_PUSH", "0")
    return tmp_path / "project"


def test_another_version_reads_everything_and_says_which_version_made_it(project):
    jobs = json.loads(run("why", "r.yaml", "--json"))
    assert {change["row"] for change in jobs[0]["changes"]} == {"code"}
    assert f"(made by {OLDER}; this is {distribution.running()})" in run("why", "r.yaml")
    again = f"after the upgrade from {OLDER} to {distribution.running()}: {len(jobs)} jobs would run again\n"
    assert run("build", "r.yaml", "--dry-run").endswith(again)
    assert json.loads(run("build", "r.yaml", "--dry-run", "--json"))["upgrade"]["jobs"] == len(jobs)
    assert "package" in run("show", "r.yaml")
    assert f"{len(jobs)} jobs" in run("history", "r.yaml")
    assert run("cache", "ls").count("\n") == len(jobs)
    run("cache", "verify", "--provenance")
    assert states("--to", "fetch") == {"fetch": "built"}
    assert f": {len(jobs) - 1} jobs would run again\n" in run("build", "r.yaml", "--dry-run")


@pytest.mark.parametrize("place", ["store", "remote"])
def test_a_frozen_build_delivers_what_an_older_version_has_locked_and_builds_nothing_else(project, place, monkeypatch):
    shutil.rmtree(project / "build")
    if place == "remote":
        shutil.rmtree(project / "cache")
    (project / "net.onnx").unlink()
    assert set(states("--frozen").values()) == {"cached"}
    assert (project / "build" / "net" / "net" / "config.pbtxt").is_file()
    monkeypatch.delenv("RECIPE_REMOTE")
    next((project / "cache" / "records").glob("*.json")).unlink()
    refusal = run("build", "r.yaml", "--frozen", expect=2)
    assert "would run with other code than the lock names" in refusal
    assert f"the lock was written by {OLDER}, and this is {distribution.running()}" in refusal
    assert "`recipe lock` would change the code of 6 steps: fetch, " in refusal


def test_a_locked_build_says_in_one_line_that_the_code_of_all_steps_is_of_another_version(project):
    refusal = run("build", "r.yaml", "--locked", expect=2)
    assert f"r.lock was written by {OLDER}, and this is {distribution.running()}: 6 rows differ\n" in refusal
    assert "  the code of 6 steps: fetch, " in refusal
    assert refusal.count("\n") == 3
    run("lock", "r.yaml")
    assert f"\nrecipe: {distribution.version()}\n" in (project / "r.lock").read_text()
    run("build", "r.yaml", "--locked", "--dry-run")


def test_a_lock_in_which_no_row_changes_keeps_its_bytes_in_another_version(project, monkeypatch):
    before = (project / "r.lock").read_bytes()
    be_older(monkeypatch)
    monkeypatch.setattr(distribution, "version", lambda: "99.0")
    assert "up to date" in run("lock", "r.yaml")
    assert (project / "r.lock").read_bytes() == before
