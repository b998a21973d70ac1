"""`recipe publish --release`: a package that was published once is published again by its digest."""

import json
import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest
import released
from program import Program
from published import SERVICE
from tiny_project import HEAVY

from engine.key import digest_of
from engine.store import releases
from engine.store.releases import Release
from engine.store.store import Store

DAY = 86400.0


class Place(Program):
    """A folder with settings of its own, in which commands run."""

    def __init__(self, folder, remote):
        folder.mkdir()
        super().__init__(folder)
        self.environment |= {"XDG_CONFIG_HOME": str(folder.parent / f"{folder.name}-config"), "RECIPE_REMOTE": remote}

    @property
    def store(self):
        return self.folder / "cache"

    def published(self, digest, url, *words):
        done = self("publish", "--release", digest, url, "--json", *words, expect=0)
        [result] = json.loads(done.stdout)
        return result


@pytest.fixture(params=["folder", "s3"])
def remote(request, tmp_path, monkeypatch):
    if request.param == "folder":
        return f"file://{tmp_path}/remote"
    server = request.getfixturevalue("seaweed")
    for name, value in server.environ("writer").items():
        monkeypatch.setenv(name, value)
    return server.url(f"releases-{tmp_path.name}")


@pytest.fixture
def models(tmp_path):
    """The URL of a model repository, and its folder."""
    folder = tmp_path / "models"
    return f"file://{folder}", folder


@pytest.fixture
def ci(remote, tmp_path):
    """A machine that has built the packages 1 and 2 and pushes with its own key."""
    place = Place(tmp_path / "ci", remote)
    place("cache", "keygen", expect=0)
    place.records = [released.put(place.store, add) for add in (1, 2)]
    place.sums = [released.sha256_of(place.store, record) for record in place.records]
    return place


@pytest.fixture
def laptop(ci, remote, tmp_path):
    """An empty folder of somebody who trusts the key of the machine that builds, and has none."""
    place = Place(tmp_path / "laptop", remote)
    key = (Path(ci.environment["XDG_CONFIG_HOME"]) / "recipe" / "signing.key.pub").read_text().strip()
    place("cache", "trust", "--key", key, "--name", "ci", expect=0)
    return place


@pytest.fixture
def production(ci, models):
    """Both packages are published, first by the digests of their keys."""
    for number, record in enumerate(ci.records, 1):
        result = ci.published(record.digest, models[0])
        assert (result["state"], result["version"], len(result["kept"])) == ("published", number, 2)
    return models


def remote_folder(remote):
    return Path(remote.removeprefix("file://")) / "v1"


def listed(place):
    return json.loads(place("cache", "releases", "--json", expect=0).stdout)


def config(folder, model=SERVICE):
    return (folder / model / "config.pbtxt").read_text()


def older(paths, seconds):
    then = time.time() - seconds
    count = 0
    for path in paths:
        if path.is_file():
            os.utime(path, (then, then))
            count += 1
    assert count


def test_an_empty_folder_rolls_back_and_forward(ci, laptop, production):
    url, folder = production
    after_two = config(folder)
    again = laptop.published(ci.sums[0][:8], url, "--dry-run")
    assert (again["state"], again["version"], again["kept"], config(folder)) == ("served-again", 1, [], after_two)
    again = laptop.published(ci.sums[0][:8], url)
    assert (again["state"], again["version"], again["serves"], again["sha256"]) == ("served-again", 1, 1, ci.sums[0])
    assert again["kept"] == [str(laptop.store)], "who has no signing key writes nothing to the remote"
    assert laptop.published(ci.sums[0][:8], url)["state"] == "unchanged"
    assert laptop.published(ci.records[1].digest[:12], url)["version"] == 2
    assert config(folder) == after_two
    shutil.rmtree(folder / "films_first" / "1")
    done = laptop("publish", "--release", ci.sums[0], url, expect=0)
    assert "version 1 is damaged" in done.stdout
    assert "version 3 is published and served" in done.stdout


def test_a_release_goes_to_another_url_with_the_same_bytes_and_facts(ci, laptop, production, tmp_path):
    url = f"file://{tmp_path}/elsewhere"
    result = laptop.published(ci.sums[1], url)
    assert (result["state"], result["version"], result["key"]) == ("published", 1, ci.records[1].digest)
    first, second = (
        {model: folder / model / str(version) for model in result["models"]}
        for folder, version in ((production[1], 2), (tmp_path / "elsewhere", 1))
    )
    for model, place in first.items():
        done = subprocess.run(["diff", "-r", place, second[model]], capture_output=True, check=False)
        assert done.returncode == 0, done.stdout
    assert ci.sums[1] in config(tmp_path / "elsewhere")
    assert f'string_value: "{result["recipe"]}"' in config(tmp_path / "elsewhere")
    shutil.rmtree(remote_folder(laptop.environment["RECIPE_REMOTE"]) / "blobs", ignore_errors=True)
    assert laptop.published(ci.sums[1], url)["state"] == "unchanged", "the store has it by now"


def test_a_release_is_other_bytes_than_the_record_that_a_later_build_has_left(ci, laptop, production):
    rebuilt = released.put(ci.store, 1, tag="another engine")
    assert rebuilt.digest == ci.records[0].digest
    assert rebuilt.artifact != ci.records[0].artifact
    assert ci.published(ci.sums[0], production[0])["sha256"] == ci.sums[0]
    released.put(laptop.store, 1, tag="one more")
    assert laptop.published(ci.sums[0], production[0])["sha256"] == ci.sums[0]


@pytest.mark.parametrize("remote", ["folder"], indirect=True)
@pytest.mark.parametrize(
    ("digits", "code", "text"),
    [("3fa9c1", 2, "is no digest of a release"), ("not-a-digest", 2, "is no digest of a release"),
     ("0123456789ab", 1, "begins with 0123456789ab")],
)  # fmt: skip
def test_a_digest_that_nothing_has_is_an_error_that_says_where_was_looked(laptop, production, digits, code, text):
    done = laptop("publish", "--release", digits, production[0], expect=code)
    assert text in done.stderr
    if code == 1:
        assert f"{laptop.store}: 0 releases match" in done.stderr
        assert "remote: 0 releases match" in done.stderr


@pytest.mark.parametrize("remote", ["folder"], indirect=True)
def test_digits_of_several_releases_and_a_key_that_is_no_package_are_refused(ci, models):
    store = Store(ci.store)
    for end in "01":
        releases.keep(store, Release("ab" * 31 + f"0{end}", "c" * 31 + end, "films"))
    done = ci("publish", "--release", "abababab", models[0], expect=2)
    assert "the beginning of several releases" in done.stderr
    assert done.stderr.count("films") == 2
    with store.presence.workplace() as folder:
        (folder / "out").mkdir()
        (folder / "out" / "model.onnx").write_text("graph")
        from engine.store import output

        key = {"code": "e"}
        store.commit(key, folder / "out", output.take(folder / "out"), report={}, seconds=1.0, peak_bytes=1,
                     machine={}, job="export")  # fmt: skip
    store.leave()
    done = ci("publish", "--release", digest_of(key), models[0], expect=2)
    assert "is of the job 'export', which makes no package" in done.stderr
    assert not any(models[1].iterdir())


@pytest.mark.parametrize("remote", ["folder"], indirect=True)
def test_without_a_store_and_a_remote_nothing_is_made(laptop, models):
    del laptop.environment["RECIPE_REMOTE"]
    done = laptop("publish", "--release", "0123456789ab", models[0], expect=2)
    assert "no remote is set" in done.stderr
    assert not list(laptop.folder.iterdir())
    done = laptop("publish", "--release", "0123456789ab", models[0], "r.yaml", expect=2)
    assert "takes no recipes" in done.stderr
    released.put(laptop.store, 1)
    done = laptop("publish", "--release", "0123456789ab", models[0], expect=1)
    assert "no remote is set (RECIPE_REMOTE)" in done.stderr


@pytest.mark.parametrize("remote", ["folder"], indirect=True)
def test_what_the_remote_lost_or_somebody_changed_is_not_published(ci, laptop, production, remote, tmp_path):
    url, there = production[0], remote_folder(remote)
    stranger = Place(tmp_path / "stranger", remote)
    assert "no key is trusted" in stranger("publish", "--release", ci.sums[0], url, expect=1).stderr
    stranger("cache", "keygen", expect=0)
    assert "unknown key" in stranger("publish", "--release", ci.sums[0], url, expect=1).stderr
    one, two = (there / "releases" / f"{sha256}.json" for sha256 in ci.sums)
    saved = one.read_bytes()
    one.write_bytes(two.read_bytes())
    refused = laptop("publish", "--release", ci.sums[0], url, expect=1).stderr
    assert f"other package: the record is that of the package {ci.sums[1]}" in refused
    assert [record.digest for record in Store(laptop.store).records()] == [], "it is not brought"
    kept = {row["sha256"]: (row["kept"], row["refused"][:13]) for row in listed(laptop)}
    assert kept == {ci.sums[0]: ([], "other package"), ci.sums[1]: ([remote], "")}
    assert ci.published(ci.sums[0], url)["kept"] == [str(ci.store), remote]
    assert {row["refused"] for row in listed(laptop)} == {""}, "publishing where it was built mends it"
    one.write_bytes(saved.replace(b"a", b"b", 1))
    assert "no envelope" in laptop("publish", "--release", ci.sums[0], url, expect=1).stderr
    one.write_bytes(saved)
    laptop.published(ci.sums[0], url)


@pytest.mark.parametrize("remote", ["folder"], indirect=True)
def test_a_revoked_key_ends_what_it_has_signed_also_in_the_store(ci, laptop, production):
    laptop.published(ci.sums[0], production[0])
    key = (Path(ci.environment["XDG_CONFIG_HOME"]) / "recipe" / "signing.key.pub").read_text().strip()
    laptop("cache", "trust", "--revoke", key, expect=0)
    done = laptop("publish", "--release", ci.sums[0], production[0], expect=1)
    assert "no key is trusted" in done.stderr
    assert f"{laptop.store}: the key that signed it is revoked" in done.stderr
    laptop("cache", "keygen", expect=0)
    assert "revoked key" in laptop("publish", "--release", ci.sums[0], production[0], expect=1).stderr
    assert [(len(row["key"]) > 0, row["kept"], row["refused"][:11]) for row in sorted(
        listed(laptop), key=lambda row: row["sha256"] != ci.sums[0])
    ] == [(True, [str(laptop.store)], "revoked key"), (False, [], "revoked key")]  # fmt: skip
    assert laptop("cache", "releases", expect=0).stdout.startswith("1 published package is kept\n")


@pytest.mark.parametrize("remote", ["folder"], indirect=True)
def test_a_damaged_copy_in_the_store_is_named_as_the_reason(ci, models):
    del ci.environment["RECIPE_REMOTE"]
    ci.published(ci.records[0].digest, models[0])
    paths = [each for each in (ci.store / "artifacts" / ci.records[0].artifact).rglob("*") if each.is_file()]
    assert paths
    for path in paths:
        path.chmod(0o644)
        path.write_bytes(b"other bytes")
    done = ci("publish", "--release", f"sha256:{ci.sums[0].upper()}", models[0], expect=1)
    assert f"{ci.store}: 1 release matches" in done.stderr
    assert f"{ci.store}: its files are missing or damaged" in done.stderr


@pytest.mark.parametrize("remote", ["folder"], indirect=True)
def test_a_blob_that_was_damaged_in_place_is_removed_and_publishing_once_more_heals_it(ci, laptop, remote, tmp_path):
    record = released.put(ci.store, 7, size=200_000)
    sha256 = ci.published(record.digest, f"file://{tmp_path}/models")["sha256"]
    blobs = [path for path in (remote_folder(remote) / "blobs").rglob("*") if path.is_file()]
    assert blobs
    for path in blobs:
        raw = bytearray(path.read_bytes())
        raw[len(raw) // 2] ^= 1
        path.write_bytes(raw)
    done = laptop("publish", "--release", sha256, f"file://{tmp_path}/other", expect=1)
    hint = f"`recipe cache verify --remote {remote} --deep --remove-damaged`"
    assert hint in done.stderr.replace("\n", " ")
    ci(*hint.strip("`").split()[1:-1], expect=1)
    assert all(path.exists() for path in blobs), "without the option, nothing is removed"
    assert "add --remote" in ci("cache", "verify", "--remove-damaged", expect=2).stderr
    done = ci(*hint.strip("`").split()[1:], expect=1)
    assert f"removed {len(blobs)} damaged blob" in done.stdout
    assert not any(path.exists() for path in blobs)
    ci.published(sha256, f"file://{tmp_path}/models")
    assert "everything is as it was pushed" in ci("cache", "verify", "--remote", "--deep", expect=0).stdout
    assert laptop.published(sha256, f"file://{tmp_path}/other")["state"] == "published"


@pytest.mark.parametrize("remote", ["folder"], indirect=True)
def test_a_package_of_an_older_form_is_refused_with_the_way_out(ci, models):
    record = released.put(ci.store, 8, beside="labels.txt")
    done = ci("publish", "--release", record.digest, models[0], expect=2)
    assert "build the package again with this version of recipe" in done.stderr
    assert not any(models[1].iterdir())


@pytest.mark.parametrize("remote", ["folder"], indirect=True)
def test_a_lost_blob_is_an_error_and_publishing_once_more_where_it_was_built_heals_it(ci, laptop, remote, tmp_path):
    url = f"file://{tmp_path}/models"
    record = released.put(ci.store, 7, size=200_000)
    sha256 = ci.published(record.digest, url)["sha256"]
    blobs = [path for path in (remote_folder(remote) / "blobs").rglob("*") if path.is_file()]
    assert blobs
    for path in blobs:
        path.unlink()
    done = laptop("publish", "--release", sha256, f"file://{tmp_path}/other", expect=1)
    assert "missing blob" in done.stderr
    assert not (tmp_path / "other").exists() or not any((tmp_path / "other").rglob("config.pbtxt"))
    assert ci.published(sha256, url)["state"] == "unchanged"
    assert laptop.published(sha256, f"file://{tmp_path}/other")["state"] == "published"


@pytest.mark.parametrize("remote", ["folder"], indirect=True)
def test_a_remote_that_cannot_be_written_keeps_nobody_from_publishing(ci, models, tmp_path):
    (tmp_path / "file").write_text("")
    ci.environment["RECIPE_REMOTE"] = f"file://{tmp_path}/file/below"
    done = ci("publish", "--release", ci.records[0].digest, models[0], expect=0)
    assert "is not kept for `--release` everywhere" in done.stderr
    assert "version 1 is published and served" in done.stdout


def test_a_web_server_gives_a_release_by_its_whole_sha256(nginx, ci, laptop, tmp_path):
    name = f"releases-{tmp_path.name}"
    ci.environment["RECIPE_REMOTE"] = nginx.url(name)
    laptop.environment["RECIPE_REMOTE"] = nginx.url(name, writes=False)
    url = f"file://{tmp_path}/models"
    ci.published(ci.records[0].digest, url)
    done = laptop("publish", "--release", ci.sums[0][:12], url, expect=1)
    assert "cannot be listed" in done.stderr
    assert laptop.published(ci.sums[0], url)["state"] == "unchanged"


@pytest.mark.parametrize("remote", ["folder"], indirect=True)
def test_releases_are_listed_and_stay_until_they_are_let_go(ci, laptop, production, remote):
    rows = json.loads(laptop("cache", "releases", "--json", expect=0).stdout)
    assert {(row["sha256"], row["key"], *row["kept"]) for row in rows} == {
        (sha256, record.digest, remote) for sha256, record in zip(ci.sums, ci.records, strict=True)
    }
    shown = ci("cache", "releases", expect=0).stdout
    assert "2 published packages are kept" in shown
    assert f"{ci.store} and {remote}" in shown
    everything = remote_folder(remote)
    older(everything.rglob("*"), 90 * DAY)
    ci("cache", "gc", "--max-size", "1B", "--yes", expect=0)
    ci("cache", "gc", "--remote", "--older-than", "30d", "--yes", expect=0)
    assert "everything is as it was pushed" in ci("cache", "verify", "--remote", "--deep", expect=0).stdout
    assert ci.published(ci.sums[0], production[0])["version"] == 1
    assert laptop.published(ci.sums[1], production[0])["version"] == 2
    assert laptop("cache", "releases", "--forget", "0123456789", expect=1).stderr.count("0 releases match") == 2
    assert "1 published package is let go" in ci("cache", "releases", "--forget", ci.sums[0][:8], expect=0).stdout
    assert "can be had" in laptop("publish", "--release", ci.sums[0], production[0], expect=1).stderr
    ci("cache", "gc", "--max-size", "1B", "--yes", expect=0)
    assert [row["sha256"] for row in json.loads(ci("cache", "releases", "--json", expect=0).stdout)] == [ci.sums[1]]
    assert [record.digest for record in Store(ci.store).records()] == [ci.records[1].digest]


@pytest.mark.parametrize("remote", ["folder"], indirect=True)
def test_no_ml_package_is_imported_and_no_recipe_is_read(ci, laptop, production):
    code = (
        "import sys\nfrom engine.cli import main\ntry:\n    main(sys.argv[1:])\nexcept SystemExit as ended:\n"
        "    assert not ended.code, ended.code\nprint(*sorted(sys.modules))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, "publish", "--release", ci.sums[0], production[0]], cwd=laptop.folder,
        env=laptop.environment, capture_output=True, text=True, check=True,
    )  # fmt: skip
    *printed, modules = done.stdout.splitlines()
    assert "is served" in "".join(printed)
    assert "engine.publishing.publisher" in modules.split()
    # Triton's own protobuf types come with tritonclient, which imports numpy.
    unwanted = HEAVY - {"rich", "numpy"} | {"engine.api", "engine.builder", "engine.steps"}
    assert [each for each in modules.split() if {each, each.partition(".")[0]} & unwanted] == []
