"""Which files git tracks below a folder: by our reader of the index, against what git itself lists."""

import os
import shutil
import subprocess

import pytest

from engine.system import git_index

pytestmark = pytest.mark.skipif(shutil.which("git") is None, reason="git is not installed")
NAMES = ["a", "cache.txt", "cache/records/ab/1", "cache/records/ab/12", "cache/ü ü", "cachet/x", "docs/cache/y", "z"]
BELOW = ["records/ab/1", "records/ab/12", "ü ü"]


def git(folder, *words):
    words = ("-c", "user.name=n", "-c", "user.email=e@example.org", *words)
    clean = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
    return subprocess.run(["git", *words], cwd=folder, check=True, capture_output=True, text=True, env=clean).stdout


def tree(folder, *options, names=NAMES):
    folder.mkdir()
    git(folder, "init", "-q", *options)
    for name in names:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(name)
    git(folder, "add", ".")
    return folder


@pytest.mark.parametrize("version", ["2", "3", "4"])
@pytest.mark.parametrize("digest", ["sha1", "sha256"])
def test_every_form_of_an_index_is_read(tmp_path, version, digest):
    top = tree(tmp_path / "tree", f"--object-format={digest}")
    git(top, "add", "-N", "a")
    (top / "later").write_text("")
    git(top, "add", "--intent-to-add", "later")  # an entry with further flags, which makes version 2 version 3
    git(top, "update-index", "--index-version", version)
    assert git_index.tracked(str(top / "cache")) == BELOW
    assert git_index.tracked(str(top)) == sorted([*NAMES, "later"])
    assert git_index.tracked(str(top / "nothing")) == []


def test_a_long_list_is_read_as_git_reads_it(tmp_path):
    names = [f"{'d' * (number % 9 + 1)}/{'f' * (number % 37)}{number}" for number in range(600)]
    top = tree(tmp_path / "tree", names=names)
    for version in ("2", "4"):
        git(top, "update-index", "--index-version", version)
        assert git_index.tracked(str(top)) == git(top, "ls-files", "-z").rstrip("\0").split("\0")


def test_a_split_index_is_read(tmp_path):
    top = tree(tmp_path / "tree")
    git(top, "update-index", "--split-index")
    (top / "cache" / "new").write_text("")
    git(top, "add", "cache/new")
    assert list((top / ".git").glob("sharedindex.*"))
    assert git_index.tracked(str(top / "cache")) == sorted([*BELOW, "new"])


def test_further_work_trees_and_links_lead_to_the_index(tmp_path):
    top = tree(tmp_path / "tree")
    git(top, "commit", "-qm", "m")
    git(top, "worktree", "add", "-q", str(tmp_path / "other"))
    assert (tmp_path / "other" / ".git").is_file()
    assert git_index.tracked(str(tmp_path / "other" / "cache")) == BELOW
    (tmp_path / "link").symlink_to(top / "cache")
    assert git_index.tracked(str(tmp_path / "link")) == BELOW


def test_a_work_tree_around_a_work_tree_counts(tmp_path):
    top = tree(tmp_path / "tree")
    git(top / "cache", "init", "-q")
    (top / "cache" / "inner").write_text("")
    git(top / "cache", "add", "inner")
    assert git_index.tracked(str(top / "cache")) == sorted([*BELOW, "inner"])


def test_the_state_changes_with_the_index(tmp_path):
    assert git_index.state(str(tmp_path)) == ""
    top = tree(tmp_path / "tree")
    before = git_index.state(str(top / "cache"))
    assert before == git_index.state(str(top / "cache"))
    (top / "new").write_text("")
    git(top, "add", "new")
    assert git_index.state(str(top / "cache")) != before != ""


@pytest.mark.parametrize("content", [b"", b"DIRC", b"DIRC\0\0\0\7\0\0\0\0", b"DIRC\0\0\0\4\0\0\0\1" + b"\xff" * 90])
def test_an_unknown_form_is_an_error(tmp_path, content):
    (tmp_path / ".git").mkdir()
    (tmp_path / ".git" / "index").write_bytes(content)
    with pytest.raises(ValueError, match="unknown format"):
        git_index.tracked(str(tmp_path / "cache"))
