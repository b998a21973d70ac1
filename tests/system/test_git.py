"""What git says of a repository: nothing of the repository runs, and nothing is written outside."""

import os
import shutil
import subprocess

import pytest

from engine.errors import UsageError
from engine.system import git

IDENTITY = ("-c", "user.name=n", "-c", "user.email=e@x", "-c", "commit.gpgsign=false")


def run_git(folder, *words, text=None):
    done = subprocess.run(
        ["git", *IDENTITY, *words], cwd=folder, input=text, capture_output=True, text=True, check=True
    )
    return done.stdout.strip()


@pytest.fixture
def repository(tmp_path):
    folder = tmp_path / "repository"
    (folder / "inner").mkdir(parents=True)
    run_git(folder, "init", "-q")
    (folder / "inner" / "one.txt").write_bytes(b"one\r\n" * 400_000)
    (folder / "with\nline.txt").write_text("")
    (folder / "link").symlink_to("inner/one.txt")
    run_git(folder, "add", "-A")
    run_git(folder, "commit", "-qm", "one")
    return folder


@pytest.fixture
def out(tmp_path):
    """An empty folder for the files of a commit."""
    (tmp_path / "out").mkdir()
    return tmp_path / "out"


def test_files_and_links_are_written_as_git_stores_them_whatever_the_attributes_say(repository, out):
    (repository / "inner" / "plain.txt").write_bytes(b"$Id$\n")
    (repository / ".gitattributes").write_text("plain.txt text eol=crlf ident\n")
    run_git(repository, "add", "inner/plain.txt", ".gitattributes")
    run_git(repository, "commit", "-qm", "two")
    commit = git.find("HEAD", repository / "inner")
    (repository / "inner" / "one.txt").write_text("later")
    git.write(commit, out)
    assert (out / "inner" / "plain.txt").read_bytes() == b"$Id$\n"
    assert (out / "inner" / "one.txt").read_bytes() == b"one\r\n" * 400_000
    assert (out / "with\nline.txt").read_bytes() == b""
    assert os.readlink(out / "link") == "inner/one.txt"
    assert commit.top == repository.resolve()


def test_no_hook_or_filter_runs_and_the_repository_stays_as_it_is(repository, out, tmp_path, monkeypatch):
    witness = tmp_path / "ran"
    hook = repository / ".git" / "hooks" / "post-checkout"
    hook.write_text(f"#!/bin/sh\ntouch {witness}\n")
    hook.chmod(0o755)
    for name in ("smudge", "clean"):
        run_git(repository, "config", f"filter.evil.{name}", f"touch {witness}")
    run_git(repository, "config", "core.fsmonitor", f"touch {witness}")
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", str(tmp_path / "config"))
    run_git(repository, "config", "--global", "filter.evil.smudge", f"touch {witness}")
    (repository / ".gitattributes").write_text("*.txt filter=evil export-subst\n")
    before = {path: path.stat().st_mtime_ns for path in repository.rglob("*")}
    git.write(git.find("HEAD", repository), out)
    assert git.untracked(repository) == [".gitattributes"]
    assert not witness.exists()
    assert {path: path.stat().st_mtime_ns for path in repository.rglob("*")} == before


def tracked(repository):
    return git.tracked(str(repository), str(repository / ".git"), ["inner/"])


def test_the_tracked_files_are_those_of_the_index_whatever_the_config_and_the_variables_name(
    repository, tmp_path, monkeypatch
):
    witness = tmp_path / "ran"
    (tmp_path / "elsewhere").mkdir()
    run_git(repository, "config", "core.worktree", str(tmp_path / "elsewhere"))
    run_git(repository, "config", "core.fsmonitor", f"touch {witness}")
    run_git(repository, "config", "pager.ls-files", f"touch {witness}")
    for name in ("GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE", "GIT_CEILING_DIRECTORIES"):
        monkeypatch.setenv(name, str(tmp_path / "elsewhere"))
    assert tracked(repository) == ["inner/one.txt"]
    assert not witness.exists()


def test_the_repository_of_another_user_is_read(repository):
    if os.geteuid() != 0:
        pytest.skip("only root can make a folder of another user")
    for path in (repository, repository / ".git"):
        os.chown(path, 12345, 12345)
    assert tracked(repository) == ["inner/one.txt"]


def test_no_program_of_a_remote_is_started_for_a_missing_object(repository, out, tmp_path):
    clone, witness = tmp_path / "clone", tmp_path / "ran"
    run_git(tmp_path, "clone", "-q", repository.as_uri(), str(clone))
    commit = run_git(clone, "rev-parse", "HEAD")
    run_git(clone, "sparse-checkout", "init", "--cone", "--sparse-index")
    for name, value in [
        ("core.repositoryformatversion", "1"), ("extensions.partialClone", "origin"),
        ("remote.origin.promisor", "true"), ("remote.origin.uploadpack", f"touch {witness}; git-upload-pack"),
        ("protocol.allow", "always"), ("protocol.file.allow", "always"),
    ]:  # fmt: skip
        run_git(clone, "config", name, value)
    for pack in (clone / ".git" / "objects" / "pack").iterdir():
        pack.unlink()
    for folder in (clone / ".git" / "objects").glob("??"):
        shutil.rmtree(folder)
    tracked(clone)
    with pytest.raises(UsageError):
        git.find("HEAD", clone)
    with pytest.raises(UsageError, match="cannot write the files"):
        git.write(git.Commit(clone, commit), out)
    assert not witness.exists()
    subprocess.run(["git", "ls-files"], cwd=clone, check=False, capture_output=True)
    assert witness.exists(), "the test is about what git would start"


@pytest.mark.parametrize("content", [b"", b"DIRC", b"DIRC\0\0\0\7\0\0\0\0"])
def test_an_index_that_git_cannot_read_is_an_error(repository, content):
    (repository / ".git" / "index").write_bytes(content)
    with pytest.raises(ValueError, match=r"."):
        tracked(repository)


@pytest.mark.parametrize("name", ["..", ".git", ".GIT"])
def test_a_name_that_leads_elsewhere_is_refused(repository, out, name):
    blob = run_git(repository, "hash-object", "-w", "--stdin", text="bad")
    # `git mktree` refuses such names; the object is written as bytes.
    raw = b"100644 " + name.encode() + b"\0" + bytes.fromhex(blob)
    tree = subprocess.run(
        ["git", "hash-object", "-t", "tree", "-w", "--stdin", "--literally"],
        cwd=repository, input=raw, capture_output=True, check=True,
    ).stdout.decode().strip()  # fmt: skip
    commit = run_git(repository, "commit-tree", tree, "-m", "bad")
    with pytest.raises(UsageError, match="cannot write the files"):
        git.write(git.find(commit, repository), out)
    assert list(out.iterdir()) == []


@pytest.mark.parametrize("revision", ["nowhere", "--help", "HEAD~9", "HEAD:link"])
def test_a_revision_that_names_no_commit_is_one_error(repository, revision):
    with pytest.raises(UsageError, match="there is no commit"):
        git.find(revision, repository)
    with pytest.raises(UsageError, match=r"in no git repository(.|\n)*fatal: "):
        git.find(revision, repository.parent)
