"""Which stores are the user's own."""

import os
import shutil
import subprocess

import pytest

from engine.errors import UsageError
from engine.system import git, own_stores


@pytest.fixture(autouse=True)
def user(tmp_path, monkeypatch):
    """A user with a list of their own."""
    monkeypatch.delenv(own_stores.VARIABLE, raising=False)
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))


def entered(path):
    own_stores.enter(str(path))
    (path / "records").mkdir(exist_ok=True)
    return path


def test_a_new_store_joins_and_a_moved_one_stays(tmp_path):
    store = entered(tmp_path / "cache")
    assert own_stores.is_own(str(store))
    assert own_stores.listed() == [str(store)]
    assert own_stores.is_own(str(store.rename(tmp_path / "moved")))


@pytest.mark.parametrize("name", ["records", "snapshots", "kept", "format"])
def test_a_folder_with_anything_that_is_read_is_not_empty_and_a_read_me_is_not_read(tmp_path, name):
    (tmp_path / "README.md").write_text("the store")
    assert own_stores.is_own(str(entered(tmp_path)))
    (tmp_path / "cache" / name).mkdir(parents=True)
    with pytest.raises(UsageError, match="is not yours"):
        own_stores.enter(str(tmp_path / "cache"))


def test_a_copy_and_another_store_in_the_place_are_somebody_elses(tmp_path):
    store = entered(tmp_path / "cache")
    shutil.copytree(store, tmp_path / "copy")
    store.rename(tmp_path / "old")
    shutil.copytree(tmp_path / "copy", store)
    for place in (tmp_path / "copy", store):
        with pytest.raises(UsageError, match="is not yours"):
            own_stores.enter(str(place))


def test_a_store_may_be_trusted_and_forgotten(tmp_path):
    store = tmp_path / "cache"
    (store / "records").mkdir(parents=True)
    own_stores.trust(str(store))
    assert own_stores.is_own(str(store))
    store = store.rename(tmp_path / "moved")
    assert own_stores.forget(str(store))
    assert not own_stores.is_own(str(store))
    assert not own_stores.forget(str(store))


def test_a_repository_cannot_bring_the_list(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_STATE_HOME", "state")
    monkeypatch.setenv("HOME", "~")
    monkeypatch.setattr(os.path, "expanduser", lambda path: path)
    assert own_stores.folder().startswith(os.devnull)
    store = entered(tmp_path / "cache")
    assert not own_stores.is_own(str(store))


@pytest.mark.parametrize("number", ["", "x" * 32, "../../../etc/passwd", "0" * 32, "a" * 9000])
def test_a_made_up_number_is_on_no_list(tmp_path, number):
    store = entered(tmp_path / "cache")
    (store / "id").write_text(number)
    assert not own_stores.is_own(str(store))


def test_without_a_list_a_new_store_can_be_used_once(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_STATE_HOME", "/proc/nothing")
    store = entered(tmp_path / "cache")
    with pytest.raises(UsageError, match="is not yours"):
        own_stores.enter(str(store))
    monkeypatch.setenv(own_stores.VARIABLE, "1")
    own_stores.enter(str(store))


def tracked(top, name):
    """Make a work tree of git that tracks the file `name`, and let it be."""
    clean = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
    subprocess.run(["git", "init", "-q"], cwd=top, check=True, env=clean)
    (top / name).parent.mkdir(parents=True, exist_ok=True)
    (top / name).write_text("")
    subprocess.run(["git", "add", "-f", name], cwd=top, check=True, env=clean)


def untracked(top, path):
    """Let git track nothing below a path any more."""
    subprocess.run(["git", "rm", "-r", "-q", "--cached", path], cwd=top, check=True)


def test_a_store_that_git_tracks_is_refused_whichever_of_its_files_it_is(tmp_path):
    store = entered(tmp_path / "cache")
    tracked(tmp_path, "cache/.gitignore")
    for name in ("records/x", "snapshots/x", "plans/x", "files/ab/x", "format"):
        assert own_stores.is_own(str(store)), name
        tracked(tmp_path, f"cache/{name}")
        assert own_stores.is_own(str(store)) is False, name
        for use in (own_stores.enter, own_stores.trust):
            with pytest.raises(UsageError, match="git tracks files of the store") as error:
                use(str(store))
            assert name in str(error.value.facts)
        untracked(tmp_path, f"cache/{name}")
    tracked(tmp_path, "cache/records/x")
    shutil.rmtree(store)
    with pytest.raises(UsageError, match="git tracks files of the store"):
        own_stores.enter(str(store))


def test_the_mends_that_the_error_names_work_for_a_store_that_came_with_a_clone(tmp_path, monkeypatch):
    store = entered(tmp_path / "cache")
    (store / "id").unlink()  # as in a clone: the store is on no list
    tracked(tmp_path, "cache/records/x")
    with pytest.raises(UsageError) as error:
        own_stores.trust(str(store))
    hint = error.value.hint
    assert f"{own_stores.VARIABLE}=1 trusts it as it is" in hint
    with monkeypatch.context() as patched:
        patched.setenv(own_stores.VARIABLE, "1")
        own_stores.enter(str(store))
    assert f"`git rm -r --cached {store}`" in hint
    assert f"`recipe cache trust {store}`" in hint
    untracked(tmp_path, store)
    own_stores.trust(str(store))
    assert own_stores.is_own(str(store))


def test_git_is_asked_once_as_long_as_its_index_stays(tmp_path, monkeypatch):
    store = entered(tmp_path / "cache")
    tracked(tmp_path, "a.txt")
    reads = []
    read = git.tracked
    monkeypatch.setattr(git, "tracked", lambda *words: reads.append(words) or read(*words))
    assert [own_stores.is_own(str(store)) for _ in range(3)] == [True] * 3
    assert len(reads) == 1
    assert own_stores.listed() == [str(store)]
    tracked(tmp_path, "b.txt")
    assert [own_stores.is_own(str(store)) for _ in range(3)] == [True] * 3
    assert len(reads) == 2


def test_a_file_with_a_name_like_a_store_is_not_in_the_store(tmp_path):
    (tmp_path / "cachet").mkdir()
    tracked(tmp_path, "docs/cache/records/x")
    tracked(tmp_path, "Cache/records/x")
    tracked(tmp_path, "cachet/records/x")
    assert own_stores.is_own(str(entered(tmp_path / "cache")))


def test_a_store_in_a_work_tree_in_a_work_tree_asks_for_both(tmp_path):
    store = entered(tmp_path / "inner" / "cache")
    tracked(tmp_path, "inner/cache/records/x")
    assert not own_stores.is_own(str(store))
    untracked(tmp_path, ".")
    assert own_stores.is_own(str(store))
    tracked(tmp_path / "inner", "cache/records/x")
    assert not own_stores.is_own(str(store))


def test_a_further_work_tree_and_a_link_to_a_store_count(tmp_path):
    (tmp_path / "tree").mkdir()
    tracked(tmp_path / "tree", "cache/records/x")
    identity = ("-c", "user.name=n", "-c", "user.email=e@x", "-c", "commit.gpgsign=false")
    subprocess.run(["git", *identity, "commit", "-qm", "m"], cwd=tmp_path / "tree", check=True)
    subprocess.run(["git", "worktree", "add", "-q", str(tmp_path / "other")], cwd=tmp_path / "tree", check=True)
    (tmp_path / "link").symlink_to(tmp_path / "other" / "cache")
    for place in (tmp_path / "other" / "cache", tmp_path / "link"):
        with pytest.raises(UsageError, match="git tracks files of the store"):
            own_stores.trust(str(place))


def test_a_folder_that_is_the_store_in_another_case_counts(tmp_path, monkeypatch):
    """On a file system that passes over upper and lower case; here, a link stands for the folder."""
    store = entered(tmp_path / "cache")
    tracked(tmp_path, "Cache/Records/x")
    shutil.rmtree(tmp_path / "Cache")
    (tmp_path / "Cache").symlink_to("cache")
    assert not own_stores.is_own(str(store))


@pytest.mark.parametrize("version", ["2", "3", "4"])
@pytest.mark.parametrize(("name", "is_own"), [("cache/records/x", False), ("cache/README.md", True), ("x", True)])
def test_without_git_an_index_that_may_list_files_of_a_store_is_an_error(tmp_path, monkeypatch, version, name, is_own):
    store = entered(tmp_path / "cache")
    tracked(tmp_path, name)
    subprocess.run(["git", "update-index", "--split-index"], cwd=tmp_path, check=True)
    tracked(tmp_path, "later")
    subprocess.run(["git", "update-index", "--index-version", version], cwd=tmp_path, check=True)
    monkeypatch.setattr(git, "is_missing", lambda: True)
    if is_own and version != "4":
        assert own_stores.is_own(str(store))
        return
    assert not own_stores.is_own(str(store))
    for use in (own_stores.enter, own_stores.trust):
        with pytest.raises(UsageError, match="it is not known whether git tracks") as error:
            use(str(store))
        assert "git is not installed" in str(error.value.facts)


def test_an_index_that_cannot_be_read_is_an_error(tmp_path):
    store = entered(tmp_path / "cache")
    (tmp_path / ".git").mkdir()
    (tmp_path / ".git" / "index").write_bytes(b"DIRC")
    assert not own_stores.is_own(str(store))
    with pytest.raises(UsageError, match="it is not known whether git tracks"):
        own_stores.enter(str(store))


def test_an_empty_folder_of_another_user_does_not_join_and_their_list_counts_for_nothing(tmp_path, monkeypatch):
    (tmp_path / "empty").mkdir()
    store = entered(tmp_path / "cache")
    monkeypatch.setattr(os, "geteuid", lambda: 12345)
    assert not own_stores.is_own(str(store))
    with pytest.raises(UsageError, match="belongs to another user"):
        own_stores.enter(str(tmp_path / "empty"))
    own_stores.enter(str(tmp_path / "made here"))
    assert own_stores.listed() == [str(store), str(tmp_path / "made here")]
