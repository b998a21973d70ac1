"""A commit's files in another folder: nothing of the repository runs, and nothing is written outside."""

import os
import subprocess

import pytest

from engine.errors import UsageError
from engine.system import commit_files

IDENTITY = ("-c", "user.name=n", "-c", "user.email=e@x", "-c", "commit.gpgsign=false")


def git(folder, *words, text=None):
    done = subprocess.run(
        ["git", *IDENTITY, *words], cwd=folder, input=text, capture_output=True, text=True, check=True
    )
    return done.stdout.strip()


@pytest.fixture
def repository(tmp_path):
    folder = tmp_path / "repository"
    (folder / "inner").mkdir(parents=True)
    git(folder, "init", "-q")
    (folder / "inner" / "one.txt").write_bytes(b"one\r\n" * 400_000)
    (folder / "with\nline.txt").write_text("")
    (folder / "link").symlink_to("inner/one.txt")
    git(folder, "add", "-A")
    git(folder, "commit", "-qm", "one")
    return folder


def test_files_and_links_are_written_as_git_stores_them(repository, tmp_path):
    commit = commit_files.find("HEAD", repository / "inner")
    (repository / "inner" / "one.txt").write_text("later")
    out = tmp_path / "out"
    out.mkdir()
    commit_files.write(commit, out)
    assert (out / "inner" / "one.txt").read_bytes() == b"one\r\n" * 400_000
    assert (out / "with\nline.txt").read_bytes() == b""
    assert os.readlink(out / "link") == "inner/one.txt"
    assert commit.top == repository.resolve()


def test_no_hook_or_filter_runs_and_the_repository_stays_as_it_is(repository, tmp_path):
    witness = tmp_path / "ran"
    hook = repository / ".git" / "hooks" / "post-checkout"
    hook.write_text(f"#!/bin/sh\ntouch {witness}\n")
    hook.chmod(0o755)
    for name in ("smudge", "clean"):
        git(repository, "config", f"filter.evil.{name}", f"touch {witness}")
    git(repository, "config", "core.fsmonitor", f"touch {witness}")
    (repository / ".gitattributes").write_text("*.txt filter=evil export-subst\n")
    before = {path: path.stat().st_mtime_ns for path in repository.rglob("*")}
    out = tmp_path / "out"
    out.mkdir()
    commit_files.write(commit_files.find("HEAD", repository), out)
    assert commit_files.untracked(repository) == [".gitattributes"]
    assert not witness.exists()
    assert {path: path.stat().st_mtime_ns for path in repository.rglob("*")} == before


@pytest.mark.parametrize("name", ["..", ".git", ".GIT"])
def test_a_name_that_leads_elsewhere_is_refused(repository, tmp_path, name):
    blob = git(repository, "hash-object", "-w", "--stdin", text="bad")
    # `git mktree` refuses such names; the object is written as bytes.
    raw = b"100644 " + name.encode() + b"\0" + bytes.fromhex(blob)
    tree = subprocess.run(
        ["git", "hash-object", "-t", "tree", "-w", "--stdin", "--literally"],
        cwd=repository, input=raw, capture_output=True, check=True,
    ).stdout.decode().strip()  # fmt: skip
    commit = git(repository, "commit-tree", tree, "-m", "bad")
    out = tmp_path / "out"
    out.mkdir()
    with pytest.raises(UsageError, match="has a file called"):
        commit_files.write(commit_files.find(commit, repository), out)
    assert list(out.iterdir()) == []


@pytest.mark.parametrize("revision", ["nowhere", "--help", "HEAD~9", "HEAD:link"])
def test_a_revision_that_names_no_commit_is_one_error(repository, revision):
    with pytest.raises(UsageError, match="there is no commit"):
        commit_files.find(revision, repository)


def test_a_folder_outside_of_repositories_is_one_error(tmp_path):
    with pytest.raises(UsageError, match=r"in no git repository(.|\n)*fatal: "):
        commit_files.find("HEAD", tmp_path)
