"""The no-op build notices each change of the way to its files: links, folders, and the root of the project."""

import os
import time
from dataclasses import dataclass
from importlib.metadata import EntryPoint

import fetched_builds as builds
import pytest

from engine import snapshot
from engine.recipe import path_ways
from engine.report import plan_files, snapshots
from engine.store import stat_cache
from engine.store.store import Store


@pytest.fixture(scope="module")
def template(tmp_path_factory):
    """Two models, whose artifacts the store has."""
    folder = tmp_path_factory.mktemp("snapshot")
    (folder / "pyproject.toml").touch()
    for number in (1, 2):
        builds.model(folder / f"v{number}", number)
        builds.recipe(folder / f"r{number}.yaml", f"v{number}")
        assert builds.build(str(folder / f"r{number}.yaml")).states == ["built"]
    return folder


@pytest.fixture
def folder(template, tmp_path, monkeypatch):
    project = builds.copied(template, tmp_path / "project")
    monkeypatch.chdir(project)
    return project


def some(table, *places):
    """Return the lines of a table as parameters; only the lines at these places run without `--whole`."""
    return [
        pytest.param(line, id=name, marks=() if place in places else pytest.mark.whole)
        for place, (name, line) in enumerate(table.items())
    ]


def becomes_stale(folder, change, *words):
    """Build until the snapshot answers, change something, and check that the next build delivers the other model."""
    words = words or ("r.yaml",)
    assert builds.settled(*words).weights == (folder / "v1" / "model.safetensors").read_bytes()
    other = (folder / "v2" / "model.safetensors").read_bytes()
    change()
    after = builds.build(*words)
    assert not after.answered
    assert after.weights == other
    assert builds.settled(*words).weights == other


def chain(folder, *links):
    """Make links, each `name -> target`."""
    for name, target in links:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).symlink_to(target)


@dataclass(frozen=True)
class Linked:
    """A model behind links: the links, the source in the recipe, and the link that is switched.

    tests/mutations/table_links.py has shorter ways.
    """

    links: tuple[tuple[str, str], ...]
    source: str
    link: str
    target: str


LINKED = {
    "three links, one with an absolute target": Linked(
        (("net", "second"), ("second", "{folder}/third"), ("third", "v1")), "net", "third", "v2"
    ),
    "a link before two dots in the recipe": Linked(
        (("hop", "one/in"), ("one/m", "../v1"), ("two/m", "../v2")), "hop/../m", "hop", "two/in"
    ),
    "a file of the model behind a chain": Linked(
        (("m/config.json", "../v1/config.json"), ("m/model.safetensors", "../blob"), ("blob", "w"),
         ("w", "v1/model.safetensors")), "m", "w", "v2/model.safetensors",
    ),
    "all files of the model in a linked folder": Linked(
        (("m/config.json", "../hop/config.json"), ("m/model.safetensors", "../hop/model.safetensors"), ("hop", "v1")),
        "m", "hop", "v2",
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", some(LINKED, 0, 1))
def test_a_switched_link_on_the_way_to_the_model_is_noticed(case, folder):
    for inner in ("one/in", "two/in"):
        (folder / inner).mkdir(parents=True)
    chain(folder, *((name, target.format(folder=folder)) for name, target in case.links))
    builds.recipe(folder / "r.yaml", case.source)
    becomes_stale(folder, lambda: builds.switch(folder / case.link, case.target))


def test_a_switched_link_is_noticed_by_a_locked_build(folder):
    chain(folder, ("net", "current"), ("current", "v1"))
    builds.recipe(folder / "r.yaml", "net")
    arguments = builds.parse(["lock", "r.yaml"])
    assert arguments.run(arguments) == 0
    builds.settled("r.yaml", "--locked")
    builds.switch(folder / "current", "v2")
    with pytest.raises(Exception, match="is not what is here"):
        builds.build("r.yaml", "--locked")


@pytest.mark.parametrize("name", ["r.yaml", "base.yaml"])
def test_a_recipe_or_its_parent_behind_a_chain_of_links_is_noticed(name, folder):
    if name == "base.yaml":
        (folder / "r.yaml").write_text("extends: base.yaml\nname: child\n")
    chain(folder, (name, "hop.yaml"), ("hop.yaml", "r1.yaml"))
    becomes_stale(folder, lambda: builds.switch(folder / "hop.yaml", "r2.yaml"))


def test_a_project_behind_a_chain_of_links_is_noticed_where_the_recipe_is_the_same_file(folder, tmp_path, monkeypatch):
    for number in (1, 2):
        (folder / f"p{number}").mkdir()
        (folder / f"p{number}" / "pyproject.toml").touch()
        (folder / f"v{number}").rename(folder / f"p{number}" / "m")
        (folder / f"v{number}").symlink_to(f"p{number}/m")
    builds.recipe(folder / "p1" / "r.yaml", "m")
    os.link(folder / "p1" / "r.yaml", folder / "p2" / "r.yaml")
    chain(folder, ("project", "hop"), ("hop", "p1"))
    words = ("project/r.yaml", "--cache", str(folder / "cache"))
    becomes_stale(folder, lambda: builds.switch(folder / "hop", "p2"), *words)


def test_a_package_behind_a_chain_of_links_is_noticed(folder, monkeypatch):
    for number in (1, 2):
        package = folder / f"package{number}"
        package.mkdir()
        (package / "__init__.py").touch()
        chain(package, ("m", f"../v{number}"))
    chain(folder, ("site/linked_models", "../hop"), ("hop", "package1"))
    monkeypatch.syspath_prepend(folder / "site")
    builds.recipe(folder / "r.yaml", "python:linked_models/m")
    becomes_stale(folder, lambda: builds.switch(folder / "hop", "package2"))


def test_an_allowed_folder_behind_a_link_is_noticed(folder, tmp_path):
    builds.copied(folder / "v1", tmp_path / "far" / "m")
    (tmp_path / "allowed").symlink_to("far")
    builds.recipe(folder / "r.yaml", f"{tmp_path}/far/m")
    words = ("r.yaml", "--allow-path", str(tmp_path / "allowed"))
    builds.settled(*words)
    builds.switch(tmp_path / "allowed", "project")
    with pytest.raises(Exception, match="leads out of the project"):
        builds.build(*words)


def test_a_switched_link_to_another_file_that_the_recipe_names_is_noticed(folder):
    (folder / "a.jsonl").write_text('{"text": "one"}\n')
    os.link(folder / "a.jsonl", folder / "b.jsonl")
    chain(folder, ("net.jsonl", "hop"), ("hop", "a.jsonl"))
    builds.recipe(folder / "r.yaml", "v1", "validate: {samples: net.jsonl}\n")
    builds.settled("r.yaml")
    builds.switch(folder / "hop", "b.jsonl")
    assert not builds.build("r.yaml").answered


def changed_during(change, *words):
    """Build, change something before the build keeps its snapshot, and return the next build."""
    time.sleep(0.05)  # a build of files that were just written keeps no snapshot
    sleep = snapshots.time.sleep
    with pytest.MonkeyPatch.context() as during:
        during.setattr(snapshots.time, "sleep", lambda seconds: change() or sleep(seconds))
        builds.build(*words)
    return builds.build(*words)


def test_a_link_that_is_switched_during_the_build_is_noticed_by_the_next(folder):
    chain(folder, ("net", "current"), ("current", "v1"))
    builds.recipe(folder / "r.yaml", "net")
    after = changed_during(lambda: builds.switch(folder / "current", "v2"), "r.yaml")
    assert not after.answered
    assert after.weights == (folder / "v2" / "model.safetensors").read_bytes()


def exchanged_during_a_build(folder):
    """Build a recipe whose folder changes places with another during the build; return the next build."""
    for number in (1, 2):
        (folder / f"p{number}").mkdir()
        builds.recipe(folder / f"p{number}" / "r.yaml", f"../v{number}")
    return changed_during(lambda: builds.exchange(folder / "p1", folder / "p2"), "p1/r.yaml")


def test_a_recipes_folder_that_changes_places_during_the_build_is_noticed_by_the_next(folder):
    after = exchanged_during_a_build(folder)
    assert not after.answered
    assert after.weights == (folder / "v2" / "model.safetensors").read_bytes()


@pytest.mark.whole
def test_the_marks_of_folders_are_needed_for_that(folder, monkeypatch):
    mark_of = path_ways.mark_of
    monkeypatch.setattr(path_ways, "mark_of", lambda place: () if place.endswith("/p1") else mark_of(place))
    assert exchanged_during_a_build(folder).answered


def test_a_link_that_is_written_anew_with_the_same_target_changes_nothing(folder):
    chain(folder, ("net", "current"), ("current", "v1"))
    builds.recipe(folder / "r.yaml", "net")
    builds.settled("r.yaml")
    builds.switch(folder / "current", "v1")
    os.utime(folder / "v1" / "..")
    assert builds.build("r.yaml").answered


# -- the environment --


def test_a_variable_of_this_program_is_compared_and_its_value_stands_in_no_snapshot(folder, monkeypatch):
    builds.recipe(folder / "r.yaml", "v1")
    monkeypatch.setenv("RECIPE_REMOTE_TOKEN", "a-very-secret-value")
    builds.settled("r.yaml")
    assert not any(b"secret" in file.read_bytes() for file in (folder / "cache" / "snapshots").iterdir())
    monkeypatch.setenv("RECIPE_REMOTE_TOKEN", "another-value")
    assert not builds.build("r.yaml").answered


@pytest.mark.parametrize("plugins_are_here", [True, False])
def test_any_variable_is_compared_where_plugins_may_read_it_and_none_but_those_of_keys_elsewhere(
    plugins_are_here, folder, monkeypatch
):
    point = EntryPoint("there", "somewhere.step:There", "a.group")  # of no group, so that nobody loads it
    monkeypatch.setattr(plan_files.plugins, "every", lambda: (point,) if plugins_are_here else ())
    builds.recipe(folder / "r.yaml", "v1")
    builds.settled("r.yaml")
    monkeypatch.setenv("ANY_VARIABLE", "1")
    assert builds.build("r.yaml").answered is not plugins_are_here
    if plugins_are_here:
        assert builds.settled("r.yaml").states == ["cached"]
        monkeypatch.delenv("ANY_VARIABLE")
        assert not builds.build("r.yaml").answered


# -- everything is read --


def lie(folder, path):
    """Let the store remember an old digest under a file's present stat row."""
    notes = Store(folder / "cache").notes
    row = stat_cache.stat_row(path)
    entries = notes.get("stat", "files")
    notes.keep("stat", "files", entries | {stat_cache.inode(row): [*stat_cache.entry(row, "0" * 32), str(path)]})


def test_a_paranoid_build_is_never_answered_by_a_snapshot_and_keeps_one_for_others(folder):
    builds.recipe(folder / "r.yaml", "v1")
    builds.settled("r.yaml")
    paranoid = builds.build("r.yaml", "--paranoid")
    assert not paranoid.answered
    assert paranoid.states == ["cached"]
    assert paranoid.notices == []
    assert builds.build("r.yaml").answered


def test_a_paranoid_build_names_what_changed_under_equal_times_and_drops_every_snapshot(folder):
    builds.recipe(folder / "r.yaml", "v1")
    builds.settled("r.yaml")
    builds.settled("r2.yaml")
    lie(folder, folder / "v1" / "config.json")
    assert builds.build("r.yaml").answered
    paranoid = builds.build("r.yaml", "--paranoid")
    assert paranoid.states == ["cached"], "its content is what the record was made from"
    [notice] = paranoid.notices
    assert notice.startswith(f"{folder.resolve()}/v1/config.json has another content")
    assert not builds.build("r2.yaml").answered
    assert builds.settled("r.yaml").states == ["cached"]


@pytest.mark.whole
def test_a_paranoid_build_reads_stored_files(folder):
    builds.recipe(folder / "r.yaml", "v1")
    weights = builds.settled("r.yaml").weights
    artifacts = (folder / "cache" / "artifacts").glob("*/model.safetensors")
    lie(folder, next(path for path in artifacts if path.read_bytes() == weights))
    notes = Store(folder / "cache").notes
    assert "0" * 32 in str(notes.get("stat", "files"))
    builds.build("r.yaml", "--paranoid")
    assert "0" * 32 not in str(notes.get("stat", "files"))


def test_verify_sources_names_what_changed_under_equal_times_and_drops_every_snapshot(folder, capsys):
    builds.recipe(folder / "r.yaml", "v1")
    builds.settled("r.yaml")
    lie(folder, folder / "v1" / "config.json")
    for words, code in (((), 0), (("--sources",), 1), (("--sources",), 0)):
        arguments = builds.parse(["cache", "verify", *words])
        assert arguments.run(arguments) == code
    assert f"{folder}/v1/config.json: the content changed" in capsys.readouterr().out
    assert not builds.build("r.yaml").answered


def test_no_snapshot_is_kept_where_a_file_system_may_not_tell(folder, monkeypatch):
    builds.recipe(folder / "r.yaml", "v1")
    builds.settled("r.yaml")
    (folder / "cache" / "snapshots").rename(folder / "old")
    (folder / "cache" / "snapshots").mkdir()
    monkeypatch.setattr(snapshots, "tells_changes", lambda _: False)
    for _ in range(2):
        assert not builds.build("r.yaml").answered
    assert list((folder / "cache" / "snapshots").iterdir()) == []


# -- the root of the project --

STAMP = '{"seal": "0", "format": 2}\n'


@pytest.fixture
def nested(folder):
    """A recipe two folders below the top, with the mark of a project in the middle, and its store elsewhere."""
    (folder / "pyproject.toml").unlink()
    inner = folder / "a" / "b" / "c"
    inner.mkdir(parents=True)
    (folder / "a" / "b" / "recipe.toml").touch()
    (folder / "v1").rename(inner / "v1")
    builds.recipe(inner / "r.yaml", "v1")
    (folder / "cache").rename(folder.parent / "elsewhere")
    return inner


def _store(folder):
    (folder / "cache").mkdir()
    (folder / "cache" / "format").write_text(STAMP)


ROOTS = {
    "`git init` in a nearer folder": lambda inner: (inner / ".git").mkdir(),
    "a worktree's .git in a nearer folder": lambda inner: (inner / ".git").write_text("gitdir: x\n"),
    "pyproject.toml in a nearer folder": lambda inner: (inner / "pyproject.toml").touch(),
    "recipe.toml in a nearer folder": lambda inner: (inner / "recipe.toml").touch(),
    "a store in a nearer folder": _store,
    "the mark removed": lambda inner: (inner.parent / "recipe.toml").unlink(),
    "the mark removed, and another above": lambda inner: (inner.parent / "recipe.toml").rename(
        inner.parent.parent / "recipe.toml"
    ),
}
NO_ROOTS = {
    "`git init` in a farther folder": lambda inner: (inner.parent.parent / ".git").mkdir(),
    "a second mark of the root": lambda inner: (inner.parent / ".git").mkdir(),
    "a folder called cache": lambda inner: (inner / "cache").mkdir(),
    "a cache of another program, with a file called format": lambda inner: (
        (inner / "cache").mkdir(), (inner / "cache" / "format").write_text("zip\n"),
    ),
    "a folder called format": lambda inner: (inner / "cache" / "format").mkdir(parents=True),
}  # fmt: skip


@pytest.mark.parametrize("change", some(ROOTS | NO_ROOTS, 0, 5, len(ROOTS) + 3))
@pytest.mark.parametrize("by", ["--cache", pytest.param("RECIPE_CACHE", marks=pytest.mark.whole)])
def test_only_another_root_of_the_project_is_noticed(by, change, nested, monkeypatch):
    store = str(nested.parents[3] / "elsewhere")
    words = ("a/b/c/r.yaml", *(("--cache", store) if by == "--cache" else ()))
    if by == "RECIPE_CACHE":
        monkeypatch.setenv("RECIPE_CACHE", store)
    builds.settled(*words)
    change(nested)
    assert builds.build(*words).answered is (change in NO_ROOTS.values())
    builds.settled(*words)


def test_a_parents_plain_cache_is_no_mark_of_a_project(tmp_path, template, monkeypatch):
    (tmp_path / "cache").mkdir()
    (tmp_path / "cache" / "format").write_text("something else\n")
    (tmp_path / "work").mkdir()
    builds.copied(template / "v1", tmp_path / "work" / "v1")
    builds.recipe(tmp_path / "work" / "r.yaml", "v1")
    monkeypatch.chdir(tmp_path / "work")
    builds.build("r.yaml")
    assert (tmp_path / "work" / "cache" / "records").is_dir()
    assert [path.name for path in (tmp_path / "cache").iterdir()] == ["format"]


def test_another_layout_of_mig_slices_is_noticed(folder, tmp_path, monkeypatch):
    """NVIDIA's driver has a folder for each slice: gpu0/mig/gi1/ci0."""
    slices = tmp_path / "capabilities" / "gpu0" / "mig"
    (slices / "gi1" / "ci0").mkdir(parents=True)
    monkeypatch.setattr(snapshot, "_CAPABILITIES", str(tmp_path / "capabilities"))
    builds.settled("r1.yaml")
    assert builds.build("r1.yaml").answered, "the same layout"
    (slices / "gi1" / "ci0").rename(slices / "ci0")
    (slices / "gi1").rmdir()
    (slices / "gi2").mkdir()
    assert not builds.build("r1.yaml").answered
    assert builds.settled("r1.yaml").answered


def test_the_texts_of_a_snapshot_have_no_secret(tmp_path, monkeypatch):
    monkeypatch.setenv("RECIPE_REMOTE", "https://user:open#sesame@host/x")
    path = str(tmp_path / "12345678")
    raw = snapshot.sealed(path, {"talk": "user:open#sesame, \0 s", "token": b"token"})
    assert b"sesame" not in raw
    (tmp_path / "12345678").write_bytes(raw)
    assert snapshot.read(path) == {"talk": "[redacted], \0 s", "token": b"token"}


def test_the_words_of_the_command_line_are_in_no_snapshot():
    identity = snapshot._identity(["build", "r.yaml", "--set", "name=http://user:open-sesame@host"], None, {})
    assert "sesame" not in repr(identity)
    assert identity != snapshot._identity(["build", "r.yaml", "--set", "name=http://user:open-sesami@host"], None, {})
