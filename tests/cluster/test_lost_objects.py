"""A remote that has lost objects: the next build on a cluster heals it, from whoever has the bytes."""

import contextlib
import secrets
import shutil
import threading
from pathlib import Path

import cluster_steps as steps
import lost_objects
import pytest
import toy
from lost_objects import DAMAGES
from process_cluster import ProcessCluster
from small_builds import SharedExecutor, project_in, states, variant
from stores import put

from engine.builder.lookup import Lookup
from engine.builder.loop import run
from engine.builder.options import Options
from engine.cluster.executor import ClusterExecutor
from engine.cluster.orders import JobOrder, Renewal
from engine.errors import Exit
from engine.events import Ended, Noticed
from engine.store.opening import open_store
from engine.store.remote import keys
from engine.store.remote.objects import BLOBS, RECORDS, record_name

pytestmark = pytest.mark.slow
JOBS = ("weights", "shuffle", "ship")


class Site:
    """A remote, nodes of one kind, and builders with stores of their own."""

    def __init__(self, folder, monkeypatch, url="", environ=None):
        self.folder, self.environ = project_in(folder), environ or {}
        self.cluster = ProcessCluster(folder)
        self.cluster.remote = url or self.cluster.remote
        self.number = secrets.randbelow(1 << 30)
        for name, value in {"RECIPE_REMOTE": self.cluster.remote, "RECIPE_TRUST": "none", **self.environ}.items():
            monkeypatch.setenv(name, value)

    def add(self, name):
        self.cluster.add(name, **self.environ)

    def damage(self, **how):
        assert lost_objects.change(self.cluster.remote, self.environ, **how) > 0

    def names(self):
        every = [lost_objects.names(self.cluster.remote, self.environ, folder=folder) for folder in (RECORDS, BLOBS)]
        return [name for names in every for name in names]

    def empty_node(self, name):
        """Empty a node's store, as if its disk had been replaced."""
        self.cluster.kill(name)
        shutil.rmtree(self.cluster.folder / name)
        self.add(name)

    def variant(self, text=""):
        return variant(self.folder, steps.Weights(number=self.number), steps.Shuffle(), steps.Ship(text=text))

    def build(self, store, *variants):
        """Build with a builder whose store has a name; return the events and the look-up."""
        lookup = Lookup(open_store(self.folder / store, project=self.folder))
        chosen = variants or [self.variant()]
        executor = ClusterExecutor(self.cluster.engine(store), lookup, [job for each in chosen for job in each.jobs])
        return list(run(chosen, lookup, executor, Options(out=self.folder / f"build-{store}"))), lookup

    def package(self, store, file="both"):
        return (self.folder / f"build-{store}" / "r" / file).read_bytes()


def notices(events):
    return [event.text for event in events if isinstance(event, Noticed)]


def seconds(events):
    """The seconds of each job: 0 for one whose result somebody had."""
    return {event.job: event.seconds for event in events if isinstance(event, Ended)}


def errors(events):
    return [event.error for event in events if isinstance(event, Ended) and event.error is not None]


@pytest.fixture
def site(tmp_path, monkeypatch):
    site = Site(tmp_path, monkeypatch)
    yield site
    site.cluster.end()


def healed(site, damage, *, empties_node=False):
    """Build, damage the remote, build again with an empty store; a third builder then needs no node."""
    site.add("one")
    first, _ = site.build("first")
    assert states(first) == dict.fromkeys(JOBS, "built")
    whole = site.names()
    site.damage(**DAMAGES[damage])
    if empties_node:
        site.empty_node("one")
    second, _ = site.build("second")
    assert second[-1].exit is Exit.OK, (errors(second), notices(second))
    assert site.package("second") == site.package("first")
    third, _ = site.build("third")
    assert states(third) == dict.fromkeys(JOBS, "cached"), notices(third)
    assert site.package("third") == site.package("first")
    return second, whole


@pytest.mark.sample(1)
@pytest.mark.parametrize("damage", DAMAGES)
def test_a_node_that_has_the_results_pushes_again_what_was_missed(site, damage):
    events, whole = healed(site, damage)
    assert sum(seconds(events).values()) == 0.0, "no job ran again"
    [line] = [text for text in notices(events) if "pushed again" in text]
    assert line.startswith("the remote file://")
    if "records" in damage or damage == "all is gone":
        assert line.endswith("1 weights, 1 shuffle, 1 ship")
        assert site.names() == whole
    else:
        assert line.endswith("could not be used: 1 ship"), "the only artifact that the build brings"


@pytest.mark.whole("test_a_node_that_has_the_results_pushes_again_what_was_missed")
@pytest.mark.parametrize("damage", DAMAGES)
def test_a_real_bucket_heals_as_a_folder_does(tmp_path, monkeypatch, seaweed, damage):
    site = Site(tmp_path, monkeypatch, seaweed.url(tmp_path.name), seaweed.environ("writer"))
    try:
        healed(site, damage)
    finally:
        site.cluster.end()


@pytest.mark.sample(1)
@pytest.mark.parametrize("damage", DAMAGES)
def test_what_nobody_has_is_made_again(site, damage):
    events, _ = healed(site, damage, empties_node=True)
    assert states(events) == dict.fromkeys(JOBS, "built")
    assert all(seconds(events).values())


def built_here(site, store):
    """Build on this machine, without a node: the builder has all bytes, and has pushed them."""
    lookup = Lookup(open_store(site.folder / store, project=site.folder))
    events = list(run([site.variant()], lookup, SharedExecutor(2), Options(out=site.folder / f"build-{store}")))
    assert states(events) == dict.fromkeys(JOBS, "built")


@pytest.mark.sample(1)
@pytest.mark.parametrize("damage", DAMAGES)
def test_inputs_that_the_builder_has_are_pushed_again_when_a_node_misses_them(site, damage):
    site.add("one")
    built_here(site, "first")
    site.damage(**DAMAGES[damage])
    events, _ = site.build("first", site.variant("other"))
    assert events[-1].exit is Exit.OK, (errors(events), notices(events))
    assert states(events) == {"weights": "cached", "shuffle": "cached", "ship": "built"}
    assert site.package("first", "text") == b"other"
    assert "these inputs cannot be brought: weights, shuffled, and 'ship' runs again" in notices(events)
    [line] = [text for text in notices(events) if "pushed again" in text]
    assert line.endswith(("1 shuffle, 1 weights", "1 weights, 1 shuffle"))


@pytest.mark.sample(1)
@pytest.mark.parametrize("damage", DAMAGES)
def test_the_jobs_run_again_that_make_inputs_which_nobody_has(site, damage):
    site.add("one")
    site.build("first")  # this builder has the bytes of the package, and only records of the jobs before
    site.damage(**DAMAGES[damage])
    site.empty_node("one")
    variants = [variant(site.folder, *each, name=name) for name, each in others(site).items()]
    events, _ = site.build("first", *variants)
    assert events[-1].exit is Exit.OK, (errors(events), notices(events))
    ran = [event.job for event in events if isinstance(event, Ended) and event.state == "built"]
    if "records" in damage:  # the blobs are there, and the builder's own records name them
        assert sorted(ran) == ["ship"] * 4
    else:
        assert sorted(ran) == ["ship"] * 4 + ["shuffle", "weights"]
        assert "the output of 'weights' cannot be brought from the remote: the job runs again" in notices(events)


def others(site):
    """The steps of four variants that have all jobs but the last in common."""
    names = ("r", "s", "t", "u")
    return {name: (steps.Weights(number=site.number), steps.Shuffle(), steps.Ship(text=name)) for name in names}


@pytest.mark.sample(1)
@pytest.mark.parametrize("damage", DAMAGES)
@pytest.mark.parametrize("store", ["first", "second"])
def test_a_source_that_the_remote_lost_is_pushed_again(site, damage, store):
    site.add("one")
    (site.folder / "words.txt").write_text("words " * 20_000)
    planned = variant(site.folder, toy.Read(source={"uri": f"file:{site.folder / 'words.txt'}"}))
    _, lookup = site.build("first", planned)
    [made] = [record for record in lookup.store.records() if record.job == "read"]
    site.damage(of=lambda name: name == record_name(made.key))
    lookup.store.record_path(made.digest).unlink()
    site.damage(**DAMAGES[damage])
    site.empty_node("one")
    events, _ = site.build(store, planned)
    assert events[-1].exit is Exit.OK, (errors(events), notices(events))
    assert states(events) == {"read": "built"}
    lacked = "these inputs cannot be brought: source, and 'read' runs again" in notices(events)
    # A builder that has never pushed the source pushes it with the first order, if the remote has no record of it.
    assert lacked == (store == "first" or "blobs" in damage)


@pytest.mark.sample(1)
@pytest.mark.parametrize("damage", DAMAGES)
def test_an_input_whose_bytes_the_builder_has_in_another_artifact_is_pushed_again(site, damage):
    site.add("one")
    (site.folder / "words.txt").write_text("words " * 20_000)
    read = toy.Read(source={"uri": f"file:{site.folder / 'words.txt'}"})
    site.build("first", variant(site.folder, read))  # the builder has the source, which is what the job copies
    site.damage(**DAMAGES[damage])
    site.empty_node("one")
    events, _ = site.build("first", variant(site.folder, read, toy.Shout()))
    assert events[-1].exit is Exit.OK, (errors(events), notices(events))
    assert "these inputs cannot be brought: text, and 'shout' runs again" in notices(events)
    assert states(events)["shout"] == "built"
    assert states(events)["read"] == "cached"


@pytest.fixture
def thief(site):
    """Something that removes the blobs of the remote as soon as they are there."""
    folder = Path(site.cluster.remote.removeprefix("file://")) / BLOBS
    is_over = threading.Event()

    def steal():
        while not is_over.wait(0.002):
            for path in folder.rglob("*"):
                with contextlib.suppress(OSError):
                    path.unlink()

    thread = threading.Thread(target=steal)
    thread.start()
    yield
    is_over.set()
    thread.join()


def test_a_remote_that_goes_on_losing_objects_is_an_error_that_names_it(site, thief):
    site.add("one")
    events, _ = site.build("first", variant(site.folder, steps.Weights(number=site.number), steps.ShipOne()))
    assert events[-1].exit is Exit.FAILED
    [error] = errors(events)
    assert "cannot be brought" in error.what
    text = str(error)
    assert f"the remote {site.cluster.remote}" in text
    assert "missing blob: the remote lacks the blob" in text
    assert f"`recipe cache verify --remote {site.cluster.remote} --deep` names what is lost there" in text
    assert "trust" not in text
    assert len([text for text in notices(events) if "runs again" in text]) == 1


def test_a_signature_that_does_not_count_is_named_with_its_key(site, tmp_path, monkeypatch):
    own, other = (keys.generate(tmp_path / f"{name}.key") for name in ("own", "other"))
    site.environ = {
        "RECIPE_TRUST": f"{own.public} {other.public}".replace(" ", ","),
        "RECIPE_SIGNING_KEY": str(tmp_path / "other.key"),
    }
    site.add("one")
    monkeypatch.setenv("RECIPE_TRUST", str(own.public))
    monkeypatch.setenv("RECIPE_SIGNING_KEY", str(tmp_path / "own.key"))
    events, _ = site.build("first", variant(site.folder, steps.Weights(number=site.number)))
    [error] = errors(events)
    assert error.what == "the remote has no record of 'weights' that counts here"
    assert f"unknown key: the record is signed by {other.public.id[:16]}, which is not on your list" in error.facts
    assert error.hint == "whoever reads a record must trust the key that signs it: `recipe cache trust --key KEY`"
    assert not [text for text in notices(events) if "runs again" in text]


def test_a_node_answers_with_a_record_of_another_node_and_brings_nothing(site):
    """Another builder's job may end between the look-up and the order."""
    planned = variant(site.folder, steps.Weights(number=site.number))
    site.add("one")
    _, lookup = site.build("first", planned)
    [made] = lookup.store.records()
    site.cluster.kill("one")
    site.add("two")
    lookup = Lookup(open_store(site.folder / "second", project=site.folder))
    lookup.store.tier.find = lambda _: None
    executor = ClusterExecutor(site.cluster.engine("second"), lookup, planned.jobs)
    events = list(run([planned], lookup, executor, Options(out=site.folder / "build-second")))
    assert (states(events), seconds(events)) == ({"weights": "built"}, {"weights": 0.0})
    assert [record.report for record in lookup.store.records()] == [made.report]
    assert (site.cluster.folder / "two" / "records" / f"{made.digest}.json").exists()
    assert not (site.cluster.folder / "two" / "artifacts" / made.artifact).exists()


def test_a_node_with_another_artifact_under_the_key_of_an_input_takes_the_one_of_the_order(site):
    """The node made it before another node made it anew, or took it from the remote before."""
    site.add("one")
    _, lookup = site.build("first")
    whole = site.package("first")
    [weights] = [record for record in lookup.store.records() if record.job == "weights"]
    put(open_store(site.cluster.folder / "one"), weights.key, {"name": "other", "weights": "other"}, job="weights")
    events, _ = site.build("first", site.variant(text="other"))
    assert states(events) == {"weights": "cached", "shuffle": "cached", "ship": "built"}
    assert site.package("first") == whole
    assert site.package("first", "text") == b"other"


def test_an_order_to_run_makes_a_stored_result_again_and_replaces_it(site, monkeypatch):
    """For `--force`: neither the node's own store nor the remote answers."""
    site.add("one")
    planned = variant(site.folder, steps.Weights(number=site.number))
    _, first = site.build("first", planned)
    site.damage(**DAMAGES["the records are gone"])
    monkeypatch.setattr("engine.cluster.executor.JobOrder", lambda *fields: JobOrder(*fields[:4], Renewal.RUN))
    _, second = site.build("second", planned)
    [before], [after] = first.store.records(), second.store.records()
    assert after.digest == before.digest
    assert after.report["began"] > before.report["began"]
    monkeypatch.undo()
    monkeypatch.setenv("RECIPE_REMOTE", site.cluster.remote)
    monkeypatch.setenv("RECIPE_TRUST", "none")
    _, third = site.build("third", planned)
    assert [record.report for record in third.store.records()] == [after.report]
