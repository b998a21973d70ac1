"""A package becomes the next version: numbers, what is served, the same package again, two publishers, cleaning up."""

import asyncio
import re
import threading
from types import SimpleNamespace

import pytest
from published import SERVICE, half_versions

from engine.publishing import publisher
from engine.publishing.package import claim_name, manifest_name
from engine.publishing.publisher import PublishState
from engine.publishing.repository import ModelRepository

MODELS = ("films_first", "films_second", SERVICE)


def test_each_package_gets_the_next_number_in_all_its_models(publish, built, look):
    first, package = built(1), built(2)
    assert [(each.state, each.version) for each in map(publish, (first, package))] == [
        ("published", 1), ("published", 2),
    ]  # fmt: skip
    entry = look.config(SERVICE)
    facts = {each: value.string_value for each, value in entry.parameters.items()}
    assert facts | {"recipe_version": "2", "recipe_key": "key-2", "recipe_sha256": package.sha256} == facts
    assert list(entry.version_policy.specific.versions) == [2]
    assert {step.model_version for step in entry.ensemble_scheduling.step} == {2}
    for name in MODELS[:2]:
        assert list(look.config(name).version_policy.specific.versions) == [1, 2]
        assert {f"{name}/{version}/model.py" for version in (1, 2)} < look.names()
    assert half_versions(look.read, look.names) == []


def test_in_a_bucket_the_entry_changes_after_a_pause(publish, built, look, url, monkeypatch):
    seen = []

    def versions(name):
        return list(look.config(name).version_policy.specific.versions)

    async def sleep(seconds):
        seen.append((seconds, *[await asyncio.to_thread(versions, name) for name in MODELS]))

    monkeypatch.setattr(publisher, "asyncio", SimpleNamespace(Semaphore=asyncio.Semaphore, sleep=sleep))
    publish(built(1), settle=7.0)
    assert not seen
    publish(built(2), settle=7.0)
    assert seen == ([] if url.startswith("file:") else [(7.0, [1, 2], [1, 2], [1])])


@pytest.mark.parametrize(
    "edit",
    [(SERVICE, "recipe_key", "recipe_kez"), (SERVICE, "versions: 1", "versions: 1\nversions: 3"),
     ("films_first", "versions: 1", "versions: 2"), (SERVICE, 'platform: "ensemble"', 'platform: "ensembl"')],
)  # fmt: skip
def test_a_configuration_that_is_not_as_it_was_published_is_written_again(publish, built, look, url, edit):
    model, old, new = edit
    publish(built(1))
    name = f"{model}/config.pbtxt"
    text = look.read(name).decode()
    edited = re.sub(r"versions: \[(\d+)\]", r"versions: \1", text).replace(old, new, 1)
    assert edited != text
    asyncio.run(ModelRepository(url, writes=True).write(name, edited.encode()))
    again = publish(built(1))
    assert (again.state, again.version) == (PublishState.SERVED_AGAIN, 1)
    assert look.read(name).decode() == text
    assert publish(built(1)).state is PublishState.UNCHANGED


def test_the_same_package_again_is_no_new_version_and_an_older_one_is_served_again_under_its_number(
    publish, built, look
):
    publish(built(1))
    before = look.names()
    again = publish(built(1))
    assert (again.state, again.version) == (PublishState.UNCHANGED, 1)
    assert look.names() == before
    publish(built(2))
    back = publish(built(1))
    assert (back.state, back.version, back.serves) == (PublishState.SERVED_AGAIN, 1, 1)
    assert list(look.config(SERVICE).version_policy.specific.versions) == [1]
    assert half_versions(look.read, look.names) == []


def test_a_dry_run_names_every_file_and_writes_nothing(publish, built, look):
    planned = publish(built(1), dry=True)
    assert look.names() == set()
    done = publish(built(1))
    assert planned.written == done.written
    assert set(done.written) < look.names()
    assert done.written[-1] == f"{SERVICE}/config.pbtxt"


def test_two_publishers_at_once_get_two_numbers(publish, built, look):
    results = []
    packages = [built(number) for number in (1, 2, 3)]
    threads = [threading.Thread(target=lambda each=each: results.append(publish(each))) for each in packages]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    assert sorted(each.version for each in results) == [1, 2, 3]
    assert list(look.config(SERVICE).version_policy.specific.versions) == [3]
    assert half_versions(look.read, look.names) == []


def test_a_killed_publishers_number_is_not_used_again_and_its_files_are_removed(publish, built, look, url):
    publish(built(1))
    repository = ModelRepository(url, writes=True)
    claim = claim_name(SERVICE, 2)
    asyncio.run(repository.create(claim, b'{"models": ["films_first"]}'))
    asyncio.run(repository.write("films_first/2/weights.bin", b"half"))
    assert publish(built(2)).version == 3
    assert {claim, "films_first/2/weights.bin"} < look.names()  # the claim is young: its publisher may live
    assert publish(built(3), stale=-3600.0).version == 4
    assert not {claim, "films_first/2/weights.bin"} & look.names()
    rows = asyncio.run(publisher.versions(ModelRepository(url, writes=False)))
    assert [(row.version, bool(row.decision and row.decision.complete), row.served) for row in rows] == [
        (1, True, False), (2, False, False), (3, True, False), (4, True, True),
    ]  # fmt: skip


def test_a_version_with_a_flipped_bit_is_named_and_replaced_by_its_own_package(publish, built, look, url):
    publish(built(1))
    repository = ModelRepository(url, writes=True)
    data = bytearray(look.read("films_first/1/model.py"))
    data[len(data) // 2] ^= 1
    asyncio.run(repository.write("films_first/1/model.py", bytes(data)))
    assert publish(built(2), dry=True).damaged == {}  # the version of another package is not read
    assert publish(built(1), dry=True).damaged == {1: "films_first/1/model.py"}
    again = publish(built(1))
    assert (again.state, again.version, again.serves) == (PublishState.PUBLISHED, 2, 2)
    assert again.damaged == {1: "films_first/1/model.py"}
    assert publish(built(1)).state == PublishState.UNCHANGED


def test_a_version_with_a_missing_file_is_named_and_replaced(publish, built, url):
    publish(built(1))
    asyncio.run(ModelRepository(url, writes=True).remove("films_first/1/model.py"))
    again = publish(built(1))
    assert (again.version, again.damaged) == (2, {1: "films_first/1/model.py"})


def test_a_decision_that_is_gone_does_not_keep_a_new_version_from_being_served(publish, built, url):
    publish(built(1))
    asyncio.run(ModelRepository(url, writes=True).remove(manifest_name(SERVICE, 1)))
    again = publish(built(2))
    assert (again.state, again.serves) == (PublishState.PUBLISHED, again.version)
    assert publish(built(2)).state is PublishState.UNCHANGED
