"""A remote is collected by age and checked, and a record that has outlived its files there is not used."""

import asyncio
import time

import pytest
from collected import DAY, check, collect, files_of, make_older, remote_of
from stores import pushed

from engine.cli import main
from engine.store.remote import objects
from engine.store.remote.objects import DeniedError, RemoteError
from engine.store.remote.trust import Trust

KEY = {"step": "x", "code": "c", "options.a": "1"}


def large(seed):
    return "".join(str(number * seed) for number in range(20_000))


def push(store, number, text):
    return pushed(store, {**KEY, "options.a": str(number)}, {"weights": text, "small": "s"})


def code(words):
    with pytest.raises(SystemExit) as ended:
        main(words)
    return ended.value.code


def test_old_records_go_with_their_blobs_and_shared_blobs_stay(machine, listing, trust):
    store = machine("a", listing, writes=True)
    push(store, 1, large(1))
    push(store, 2, large(2))
    if listing.url.startswith("file"):
        age = 50.0
        make_older((*files_of(listing, objects.RECORDS), *files_of(listing, objects.BLOBS)), 2 * age)
    else:
        age = 1.2
        time.sleep(age + 1.0)  # the clocks of servers have whole seconds
    push(store, 3, large(2))
    would = collect(listing, older_than=age, dry_run=True)
    assert check(listing, trust).records == 3, "a dry run removes nothing"
    result = collect(listing, older_than=age)
    assert vars(result) == vars(would)
    assert (result.records, result.blobs, result.left_records, result.left_blobs) == (2, 1, 1, 1)
    verdict = check(listing, trust, deep=True)
    assert (verdict.records, verdict.blobs, verdict.unnamed, verdict.faults) == (1, 1, 0, [])
    other = machine("b", listing)
    record = other.find({**KEY, "options.a": "3"})
    assert other.bring(record)


def test_a_push_in_progress_keeps_its_blobs(machine, folder, trust):
    store = machine("a", folder, writes=True)
    push(store, 1, large(1))
    [record] = files_of(folder, objects.RECORDS)
    raw = record.read_bytes()
    record.unlink()  # as if the record had not been written yet
    assert collect(folder, older_than=0.0, grace=60.0).blobs == 0
    make_older(files_of(folder, objects.BLOBS), 10 * DAY)  # a push may rely on a blob of this age: half of 30 days
    assert collect(folder, older_than=30 * DAY, grace=60.0).blobs == 0
    record.write_bytes(raw)
    assert check(folder, trust, deep=True).faults == []
    record.unlink()
    make_older(files_of(folder, objects.BLOBS), 16 * DAY)
    assert collect(folder, older_than=30 * DAY, grace=60.0).blobs == 1


def test_blobs_stay_while_a_record_cannot_be_read(machine, folder):
    push(machine("a", folder, writes=True), 1, large(1))
    [record] = files_of(folder, objects.RECORDS)
    record.write_bytes(b"{}")
    make_older(files_of(folder, objects.BLOBS), 100 * DAY)
    result = collect(folder, older_than=30 * DAY)
    assert (result.unreadable, result.blobs, result.left_blobs) == (1, 0, 1)


def test_a_missing_a_short_and_a_changed_blob_are_faults(machine, listing, trust):
    store = machine("a", listing, writes=True)
    for number in (1, 2, 3):
        push(store, number, large(number))
    place = remote_of(listing)

    async def hurt():
        blobs = sorted([entry async for entry in place.list(objects.BLOBS)], key=lambda entry: entry.name)
        assert len(blobs) == 3
        await place.remove(blobs[0].name)
        await place.write(blobs[1].name, b"short")
        await place.write(blobs[2].name, b"?" * blobs[2].size)

    asyncio.run(hurt())
    assert sorted(fault.kind for fault in check(listing, trust).faults) == ["missing blob", "wrong size"]
    assert len(check(listing, trust, deep=True).faults) == 3


def test_records_of_strangers_and_under_other_names_are_faults(machine, folder, trust):
    push(machine("a", folder, writes=True), 1, large(1))
    [record] = files_of(folder, objects.RECORDS)
    other = record.with_name("f" * 64 + ".json")
    other.write_bytes(record.read_bytes())
    assert [fault.kind for fault in check(folder, trust).faults] == ["other key"]
    assert {fault.kind for fault in check(folder, Trust()).faults} == {"unknown key"}


def test_a_reader_cannot_collect(machine, seaweed, remote_at, tmp_path):
    environ = seaweed.environ("reader")
    remote = remote_at(seaweed.url(f"denied-{tmp_path.name}"), environ)
    with pytest.raises(DeniedError):
        collect(remote, older_than=0.0)


def test_a_web_server_collects_by_itself(nginx, remote_at, trust):
    remote = remote_at(nginx.url("upkeep"))
    with pytest.raises(RemoteError, match="cannot be listed") as caught:
        collect(remote, older_than=0.0)
    assert "own retention" in caught.value.hint
    with pytest.raises(RemoteError, match="cannot be listed"):
        check(remote, trust)


def test_the_commands_ask_for_an_age_and_before_half_of_the_remote_goes(machine, folder, monkeypatch, capsys, tmp_path):
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.setenv("RECIPE_TRUST", "none")
    monkeypatch.chdir(tmp_path)
    push(machine("a", folder, writes=True), 1, large(1))
    gc = ["cache", "gc", "--remote", folder.url]
    assert code(gc) == 2
    assert "no age is named" in capsys.readouterr().err
    make_older((*files_of(folder, objects.RECORDS), *files_of(folder, objects.BLOBS)), 100 * DAY)
    assert code(["cache", "verify", "--remote", folder.url, "--deep"]) == 0
    assert code([*gc, "--older-than", "30d"]) == 2
    assert "more than half" in capsys.readouterr().err
    (tmp_path / "config" / "recipe").mkdir(parents=True)
    (tmp_path / "config" / "recipe" / "config.toml").write_text("[remote]\nretention_days = 30\n")
    assert code([*gc, "--dry-run"]) == 0
    assert "would remove 1 records and 1 blobs" in capsys.readouterr().out
    files_of(folder, objects.BLOBS)[0].unlink()
    assert code(["cache", "verify", "--remote", folder.url]) == 1
    assert "1 missing blob" in capsys.readouterr().out
    assert code([*gc, "--yes"]) == 0
    assert "removed 1 records and 0 blobs" in capsys.readouterr().out


def test_a_record_past_the_retention_is_looked_at_before_it_is_used(machine, folder, monkeypatch):
    push(machine("a", folder, writes=True), 1, large(1))
    key = {**KEY, "options.a": "1"}
    early, late, again = (machine(name, folder, retention=30 * DAY) for name in "bcd")
    [blob] = files_of(folder, objects.BLOBS)
    content = blob.read_bytes()
    blob.unlink()
    assert early.find(key) is not None, "the record is young: nothing is looked up"
    now = time.time()
    monkeypatch.setattr(time, "time", lambda: now + 31 * DAY)
    assert late.find(key) is None
    assert late.tier.counts.refused == {"missing blob": 1}
    blob.write_bytes(content)
    assert again.bring(again.find(key))
