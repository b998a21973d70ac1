"""Verification finds every damaged file of a store, mends it or puts it aside, and leaves undamaged files alone."""

import os
import random
import shutil
from dataclasses import replace

import pytest
from stores import flip, put

from engine import digest
from engine.errors import StoreError
from engine.key import digest_of
from engine.store import heads, output, verification
from engine.store.sealed import sealed
from engine.store.store import Store
from engine.store.verification import StoredContents

KEYS = [{"step": "x", "options.n": str(number)} for number in range(2)]


@pytest.fixture
def store(tmp_path):
    store = Store(tmp_path / "cache")
    for number, key in enumerate(KEYS):
        put(store, key, {"weights": "W" * 500, "own": str(number) * 100, "sub/more": "more"}, log=b"said something\n")
    store.leave()
    return store


def verify(store):
    return verification.verify(store.root, parallel=2)


def again(store):
    """Look up every key and make missing artifacts again, like the next build; return the number of artifacts made."""
    fresh = Store(store.root)
    count = 0
    for number, key in enumerate(KEYS):
        if fresh.find(key) is None:
            put(fresh, key, {"weights": "W" * 500, "own": str(number) * 100, "sub/more": "more"}, log=b"said\n")
            count += 1
    fresh.leave()
    return count


def test_a_whole_store_and_its_copy_are_called_so(store, tmp_path):
    shutil.copytree(store.root, tmp_path / "copy")
    # Each inode is read once. A copy has no links, so no artifact shares a file of its pool.
    for root, orphans, files in ((store.root, 0, 4), (tmp_path / "copy", 4, 4 + 2 * 3)):
        verdict = verification.verify(root, parallel=2)
        assert verdict.damages == []
        assert (verdict.records, verdict.orphans, verdict.swept, verdict.files) == (2, orphans, 0, files)


@pytest.mark.parametrize("kind", ["records", "artifacts", "files", "logs"])
@pytest.mark.parametrize("hurt", ["flip", "flip unseen", "truncate", "delete"])
def test_every_hurt_to_any_file_is_found_put_aside_and_healed_by_the_next_build(store, kind, hurt):
    names = sorted(digest.walk(store.root / kind))
    assert names
    for name in names:
        path = store.root / kind / name
        match hurt:
            case "flip":
                flip(path, random.Random(name))
            case "flip unseen":
                before = path.stat()
                flip(path, random.Random(name))
                os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))
            case "truncate":
                path.chmod(0o644)
                os.truncate(path, path.stat().st_size // 2)
            case _:
                path.unlink()
        if (kind, hurt) == ("records", "delete"):
            assert again(store) == 1  # nothing names it any more, but for a recipe's last build: see below
            continue
        verdict = verify(store)
        paths = [damage.path for damage in verdict.damages]
        assert any(found.name == path.name or path.is_relative_to(found) for found in paths), name
        assert verify(store).damages == []
        again(store)
        assert verify(store).damages == []
        assert all(Store(store.root).find(key) for key in KEYS)


def test_bit_rot_that_no_stat_row_shows_is_found(store, monkeypatch):
    path = next((store.root / "artifacts").rglob("weights"))
    again(store)
    before = path.stat()
    flip(path, random.Random(1))
    real = os.stat

    def rotten(name, *args, **kwargs):
        status = real(name, *args, **kwargs)
        return before if (status.st_dev, status.st_ino) == (before.st_dev, before.st_ino) else status

    monkeypatch.setattr(os, "stat", rotten)
    assert verify(store).damages
    assert again(store) == 2  # they share it


def test_swapped_records_artifacts_and_files_are_found(store):
    for kind in ("records", "artifacts", "files/*"):
        one, two, *_ = sorted(store.root.glob(f"{kind}/*"))
        one.rename(store.root / "between")
        two.rename(one)
        (store.root / "between").rename(two)
        assert len(verify(store).damages) >= 2, kind
        again(store)
        assert verify(store).damages == [], kind


def test_a_stranger_in_an_artifact_and_a_missing_stamp_are_found_and_mended(store):
    place = next((store.root / "artifacts").iterdir())
    (place / "stranger").write_text("")
    (store.root / "format").unlink()
    stamp, stranger = verify(store).damages
    assert stamp.path.name == "format"
    assert stamp.mended
    assert stranger.mended
    assert "stranger does not belong to it" in stranger.why
    assert verify(store).damages == []


def test_what_a_killed_build_leaves_is_no_damage(store):
    record = Store(store.root).find(KEYS[0])
    store.record_path(record.digest).unlink()
    (store.root / "staging" / "tmp").write_text("half")
    verdict = verify(store)
    assert verdict.damages == []
    assert (verdict.orphans, verdict.swept) == (1, 1)


def test_what_was_damaged_after_an_interruption_is_found(store):
    def stop(done, total):
        if done == total:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        verification.verify(store.root, parallel=1, on_progress=stop)
    flip(next((store.root / "artifacts").rglob("own")), random.Random(1))
    assert verify(store).damages


def test_a_record_that_a_build_has_left_and_is_gone_is_missed_once(store):
    store.notes.keep(
        heads.KIND,
        "r",
        {"": {"name": "r", "recipe": {}, "used": 1, "jobs": {"x": {"run": "r", "key": digest_of(KEYS[0])}}}},
    )
    store.leave()
    assert verify(store).damages == []
    store.record_path(digest_of(KEYS[0])).unlink()
    [damage] = verify(store).damages
    assert "that a build has left is missing" in damage.why
    assert verify(store).damages == []


def test_a_damaged_note_is_dropped(store):
    store.notes.keep("resolutions", "hub", {"hf:x@main": "a" * 40})
    store.leave()
    flip(store.root / "resolutions" / "hub.json", random.Random(3))
    assert Store(store.root).notes.get("resolutions", "hub") == {}
    assert len(verify(store).damages) == 1
    assert verify(store).damages == []


def test_a_foreign_folder_is_left_alone(tmp_path):
    (tmp_path / "format").write_text("99")
    with pytest.raises(StoreError):
        verification.verify(tmp_path, parallel=1)
    assert (tmp_path / "format").read_text() == "99"


def test_a_record_whose_output_belongs_to_another_key_or_step_is_put_aside(store):
    report = {"n": 1}
    keys = [{"code": letter} for letter in "abcd"]
    mine = put(store, keys[0], {"a": "mine"})
    for number, (step, key) in enumerate([("toy:A", keys[1]), ("toy:A", keys[0]), ("toy:B", keys[3])], start=1):
        bound = output.binding(step=step, key=digest_of(key), tree=output.tree(mine.files), report=report)
        record = replace(mine, key=keys[number], step="toy:A", binding=bound)
        store.write(store.record_path(record.digest), sealed(record.fields()))
    verdict = verify(store)
    assert sorted(damage.path.stem for damage in verdict.damages) == sorted(digest_of(key) for key in keys[2:])
    assert {damage.why for damage in verdict.damages} == {"the output belongs to another key or to another step"}
    assert [store.find(key) is not None for key in keys] == [True, True, False, False]
    assert verify(store).damages == []


@pytest.fixture
def small(tmp_path):
    store = Store(tmp_path / "small")
    put(store, {"step": "x"}, {"weights": "W" * 500, "same": "W" * 500, "own": "o"})
    yield store
    store.leave()


def test_links_to_one_file_are_read_once(small, monkeypatch):
    reads, progress = [], []
    of_file = digest.of_file
    monkeypatch.setattr(verification.digest, "of_file", lambda path: reads.append(path) or of_file(path))
    contents = StoredContents(small, 2, lambda done, total: progress.append((done, total)))
    assert len(reads) == contents.files == 2
    assert contents.bytes == 501
    assert progress == [(1, 2), (2, 2)]
    [weights] = small.layout.artifacts.rglob("weights")
    assert contents.of(weights) == digest.of_bytes(b"W" * 500)
    assert len(reads) == 2


def test_a_file_that_changed_is_read_again_and_a_link_and_a_file_that_is_gone_have_no_digest(small, tmp_path):
    contents = StoredContents(small, 1, lambda *_: None)
    [own] = small.layout.artifacts.rglob("own")
    own.chmod(0o644)
    own.write_bytes(b"changed")
    assert contents.of(own) == digest.of_bytes(b"changed")
    (tmp_path / "link").symlink_to(own)
    assert contents.of(tmp_path / "link") is None
    assert contents.of(tmp_path / "gone") is None


def test_a_trace_that_records_share_is_reported_once(store):
    records = [store.read(digest_of(key)) for key in KEYS]
    for record in records:
        store.write(store.record_path(record.digest), sealed(replace(record, trace="t" * 32).fields()))
    store.leave()
    [damage] = verify(store).damages
    assert damage.why == "the trace is missing"
    assert verify(store).damages == []
