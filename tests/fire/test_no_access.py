"""Stores that may only be read, are somebody else's, or cannot be locked: reading works, the rest is said.

Needs root for mounts and for dropping rights; the tests of locks do not.
"""

import json
import os
import shutil
import subprocess

import pytest
from fire.builders import Builders
from fire.mounts import Disk, own_mounts
from fire.project import Ground

pytestmark = pytest.mark.slow

NO_LOCKS = json.dumps({"locks": False})
UNPRIVILEGED = ("setpriv", "--bounding-set=-dac_override,-dac_read_search,-fowner")
"""Root, but held to the rights that files give."""


def refused_clearly(builder, *words):
    assert builder.code == 2, builder.stdout + builder.stderr
    [text] = {json.dumps(error) for error in builder.errors()}
    error = json.loads(text)
    assert error["what"]
    assert error["hint"]
    assert any(word in text for word in words), text


class MovedOut(Ground):
    """A ground with the packages and the log outside of the disk that holds the store."""

    @property
    def out(self):
        return self.folder.parent.parent / "build"

    @property
    def announcements(self):
        return self.folder.parent.parent / "told"


@pytest.fixture(scope="module")
def away(field, tmp_path_factory):
    """What starts builders among mounts of their own."""
    with own_mounts():
        builders = Builders(field.builders.project, tmp_path_factory.mktemp("away") / "said")
        yield builders
        builders.close()


@pytest.fixture(scope="module")
def read_only(away, field, tmp_path_factory):
    """A ground whose store was built, is up to date, and can only be read from now on."""
    folder = tmp_path_factory.mktemp("read_only")
    disk = Disk(folder / "disk")
    ground = field.undisturbed.copy(disk.place / "ground")
    shutil.move(ground.out, folder / "build")
    moved = MovedOut(ground.folder)
    away.build(moved)
    disk.read_only()
    yield moved
    disk.remove()


def test_an_up_to_date_build_needs_only_to_read(away, field, read_only):
    assert away.delivered(away.build(read_only)) == field.expected
    # With another word in the command line there is no snapshot to answer from.
    looked = away.build(read_only, "--keep-going")
    assert away.delivered(looked) == field.expected
    assert looked.events[-1]["state"] == "up to date"


@pytest.mark.whole("test_an_up_to_date_build_needs_only_to_read")
def test_a_package_is_restored_from_a_store_that_can_only_be_read(away, field, read_only):
    (read_only.out / "fire-text0" / "config.pbtxt").write_text("edited")
    assert away.delivered(away.build(read_only)) == field.expected


def test_what_must_be_written_is_refused_with_one_clear_error(away, read_only):
    refused_clearly(away.build(read_only, "--set", "steps.big.megabytes=1", "-j1", expect=None), "Read-only")


def test_a_new_store_where_nothing_can_be_written_is_refused(away, read_only):
    words = ("build", "r.yaml", "--json", "--cache", str(read_only.folder / "new"))
    refused_clearly(away.start(words, read_only).wait(), "Read-only")
    spoken = away.start(("build", "r.yaml", "--cache", str(read_only.folder / "new")), read_only).wait(expect=2)
    assert spoken.stderr.count("error:") == 1


@pytest.fixture(scope="module")
def unprivileged(field, tmp_path_factory):
    """What starts builders that are held to the rights that files give."""
    if os.geteuid() == 0 and subprocess.run([*UNPRIVILEGED, "true"], capture_output=True, check=False).returncode:
        pytest.skip("rights cannot be dropped here: setpriv does not work")
    prefix = UNPRIVILEGED if os.geteuid() == 0 else ()
    builders = Builders(field.builders.project, tmp_path_factory.mktemp("unprivileged") / "said", prefix=prefix)
    yield builders
    builders.close()


@pytest.fixture
def finished(unprivileged, field, tmp_path):
    """A ground that is up to date."""
    finished = field.undisturbed.copy(tmp_path / "ground")
    unprivileged.build(finished)
    return finished


def test_a_store_without_the_right_to_write_can_still_be_read(unprivileged, field, finished):
    paths = {path: path.stat().st_mode for path in (finished.cache, *finished.cache.rglob("*"))}
    for path in paths:
        path.chmod(0o555 if path.is_dir() else 0o444)
    assert unprivileged.delivered(unprivileged.build(finished)) == field.expected
    looked = unprivileged.build(finished, "--keep-going")
    assert unprivileged.delivered(looked) == field.expected
    assert looked.events[-1]["state"] == "up to date"
    refused_clearly(unprivileged.build(finished, "--set", "steps.big.megabytes=1", "-j1", expect=None), "denied")
    for path, before in paths.items():
        path.chmod(before)  # so that it can be removed


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a store to somebody else")
@pytest.mark.whole("test_an_up_to_date_build_needs_only_to_read")
def test_a_store_that_is_somebody_elses_can_be_read_and_is_not_written(unprivileged, field, finished):
    for path in [finished.cache, *finished.cache.rglob("*")]:
        os.chown(path, 65534, 65534)
        path.chmod(0o755 if path.is_dir() else 0o644)
    assert unprivileged.delivered(unprivileged.build(finished)) == field.expected
    refused_clearly(unprivileged.build(finished, "--set", "steps.big.megabytes=1", "-j1", expect=None), "denied")
    assert {path.stat().st_uid for path in finished.cache.rglob("*")} == {65534}


@pytest.mark.parametrize("place", ["records", "artifacts", "files", "heads", "stat", "snapshots", "logs", "format"])
@pytest.mark.sample(1)
def test_a_file_that_cannot_be_read_is_made_again_or_said(place, unprivileged, field, finished):
    root = finished.cache / place
    for path in [root] if root.is_file() else [each for each in root.rglob("*") if each.is_file()][:3]:
        path.chmod(0)
    builder = unprivileged.build(finished, expect=None)
    if builder.code == 0:
        assert unprivileged.delivered(builder) == field.expected
    else:
        refused_clearly(builder, "denied")


def test_without_locks_it_is_said_once_and_the_build_is_right(field, ground):
    ended = field.builders.build(ground, hook=NO_LOCKS)
    notes = [event["text"] for event in ended.events if event["event"] == "note"]
    assert len(notes) == 1
    assert "no working locks" in notes[0]
    assert field.builders.delivered(ended) == field.expected
    words = ("build", "r.yaml", "--keep-going", "--cache", str(ground.cache), "-o", str(ground.out))
    spoken = field.builders.start(words, ground, hook=NO_LOCKS).wait(expect=0)
    assert spoken.stderr.count("no working locks") == 1


@pytest.mark.whole("test_without_locks_it_is_said_once_and_the_build_is_right")
def test_without_locks_builders_beside_each_other_all_deliver_what_is_right(field, ground):
    crowd = [field.builders.start((*ground.words, "-j2"), ground, hook=NO_LOCKS) for _ in range(4)]
    for builder in crowd:
        builder.wait(expect=0)
        assert field.builders.delivered(builder) == field.expected
    assert field.builders.verify(ground)["damaged"] == []
    field.builders.build(ground)
    assert ground.leftovers() == []


@pytest.mark.whole("test_without_locks_it_is_said_once_and_the_build_is_right")
def test_without_locks_nothing_is_collected(field, ground):
    field.builders.build(ground)
    before = ground.records()
    words = ("cache", "gc", "--older-than", "0s", "--cache", str(ground.cache))
    refused = field.builders.start(words, ground, hook=NO_LOCKS).wait(expect=1)
    assert "no working locks" in refused.stderr
    assert ground.records() == before
