"""What every executor does: this machine's, the cluster's over processes, and the cluster's over Ray."""

import os
import secrets
import time
from collections import Counter
from dataclasses import replace
from pathlib import Path

import cluster_steps as steps
import pytest
import toy
import working_folders
from changing_machine import TOOL, ChangingMachine
from fake_t4 import DRIVER
from process_cluster import MEMORY, ProcessCluster
from ray_cluster import RayCluster
from small_builds import SharedExecutor, project_in, states, variant

from engine.builder.executors.zygotes import ZygoteHandle
from engine.builder.lookup import Lookup
from engine.builder.loop import POLL_SECONDS, run
from engine.builder.options import Options
from engine.cluster import machines
from engine.cluster.executor import ClusterExecutor
from engine.cluster.orders import NodeAnswer
from engine.cluster.ray_engine import RayEngine
from engine.errors import Exit
from engine.events import Ended, Noticed, RunsElsewhere, Started
from engine.key import digest_of
from engine.machine import cuda, nvml
from engine.store.opening import open_store
from engine.store.store import Store


class Here:
    """Jobs run on this machine, some at a time."""

    salt = 0

    def __init__(self, folder, slots=2):
        self.folder, self.slots = folder, slots

    def lookup(self):
        return Lookup(Store(self.folder / "cache"))

    def executor(self, lookup, jobs, **_):
        return SharedExecutor(self.slots, memory=MEMORY)


class OnNodes:
    """Jobs run on nodes, with a remote between them and the builder."""

    def __init__(self, folder, cluster, slots=2):
        self.folder, self.cluster, self.slots = folder, cluster, slots
        self.salt = secrets.randbelow(1 << 30)  # the nodes know the jobs of earlier tests
        self.notices = []
        self.on_notice = self.notices.append

    def lookup(self, store="cache"):
        return Lookup(open_store(self.folder / store, project=self.folder))

    def executor(self, lookup, jobs, builder="test"):
        return ClusterExecutor(self.cluster.engine(builder), lookup, jobs, notice=self.on_notice)

    def kill(self, name):
        self.cluster.kill(name)


class RayNodes:
    """The nodes of a Ray cluster, for one test after another."""

    def __init__(self, folder):
        (folder / "remote").mkdir()
        self.remote = f"file://{folder / 'remote'}"
        self.folder = folder / "nodes"
        self.head = RayCluster()
        self.threads = {}

    def add(self, name, *, cpus=1, **variables):
        own = {"RECIPE_REMOTE": self.remote, "RECIPE_NODE_STORE": str(self.folder / name), **variables}
        self.head.add(name, cpus=cpus, environment=own)
        self.threads[name] = cpus

    def kill(self, name):
        self.head.kill(name)
        del self.threads[name]

    def engine(self, _builder):
        return RayEngine("auto")

    def enter(self, monkeypatch):
        for name in ("RAY_AUTH_MODE", "RAY_AUTH_TOKEN"):
            monkeypatch.setenv(name, self.head.environment[name])
        monkeypatch.setenv("RAY_ADDRESS", self.head.gcs)

    def end(self):
        self.head.close()


KINDS = ["processes", pytest.param("ray", marks=pytest.mark.whole)]
pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def clusters(tmp_path_factory):
    """Return the cluster of a kind for machines of so many CPUs: its nodes live as long as the tests of this file."""
    started = {}

    def of(kind, cpus):
        if (kind, cpus) not in started:
            folder = tmp_path_factory.mktemp(kind)
            started[kind, cpus] = RayNodes(folder) if kind == "ray" else ProcessCluster(folder)
        return started[kind, cpus]

    yield of
    for nodes in started.values():
        nodes.end()


@pytest.fixture(params=["here", *KINDS])
def site(request, tmp_path, monkeypatch, clusters):
    yield from _with_nodes(request.param, clusters, tmp_path, monkeypatch)


@pytest.fixture(params=KINDS)
def cluster(request, tmp_path, monkeypatch, clusters):
    yield from _with_nodes(request.param, clusters, tmp_path, monkeypatch)


@pytest.fixture(params=["here", *KINDS])
def machine(request, tmp_path, monkeypatch, clusters):
    """One machine with three CPUs."""
    yield from _with_nodes(request.param, clusters, tmp_path, monkeypatch, names=["one"], cpus=3)


@pytest.fixture
def two_processes(tmp_path, monkeypatch, clusters):
    """The nodes of `cluster` as processes, for tests that look into them."""
    yield from _with_nodes("processes", clusters, tmp_path, monkeypatch)


@pytest.fixture(params=KINDS)
def nodeless(request, tmp_path, monkeypatch):
    """A cluster without nodes."""
    project_in(tmp_path)
    nodes = RayNodes(tmp_path) if request.param == "ray" else ProcessCluster(tmp_path)
    _use(nodes, monkeypatch)
    yield OnNodes(tmp_path, nodes)
    nodes.end()


def _use(nodes, monkeypatch):
    monkeypatch.setenv("RECIPE_REMOTE", nodes.remote)
    monkeypatch.setenv("RECIPE_TRUST", "none")
    if isinstance(nodes, RayNodes):
        nodes.enter(monkeypatch)


def _with_nodes(kind, clusters, folder, monkeypatch, *, names=("one", "two"), cpus=1):
    project_in(folder)
    if kind == "here":
        yield Here(folder, len(names) * cpus)
        return
    nodes = clusters(kind, cpus)
    _use(nodes, monkeypatch)
    for name in names:
        if name not in nodes.threads:
            nodes.add(name, cpus=cpus)
    yield OnNodes(folder, nodes, len(names) * cpus)


def loop(site, *variants, store=None, builder="test", **options):
    lookup = site.lookup() if store is None else site.lookup(store)
    jobs = [job for each in variants for job in each.jobs]
    executor = site.executor(lookup, jobs, builder=builder)
    return run(variants, lookup, executor, Options(out=site.folder / "build", **options)), lookup


def build(site, *variants, **options):
    events, lookup = loop(site, *variants, **options)
    return list(events), lookup


def records(lookup, job):
    return [record for record in lookup.store.records() if record.job == job]


def tells(site, count, *, seconds=0.0, kind=steps.Tell):
    jobs = (kind(number=site.salt + number, seconds=seconds) for number in range(count))
    return [variant(site.folder, step, name=f"{step.step_name()}{number}") for number, step in enumerate(jobs)]


def test_a_job_runs_after_the_jobs_that_it_needs_and_the_second_build_has_nothing_to_do(site):
    planned = variant(site.folder, steps.Tell(number=site.salt), steps.After())
    events, lookup = build(site, planned)
    assert states(events) == {"tell": "built", "after": "built"}
    [first], [second] = records(lookup, "tell"), records(lookup, "after")
    assert first.report["ended"] <= second.report["began"]
    assert content(lookup, second, "number") == f"{site.salt}!"
    events, _ = build(site, planned)
    assert states(events) == {"tell": "cached", "after": "cached"}
    assert not [event for event in events if isinstance(event, Started)]


def test_as_many_jobs_run_at_a_time_as_there_are_slots_and_no_more(site):
    events, lookup = build(site, *tells(site, 4, seconds=0.3))
    assert is_full(site, events, {"tell": 1})
    spans = [(record.report["began"], record.report["ended"]) for record in records(lookup, "tell")]
    assert len(spans) == 4
    together = [sum(began <= moment < ended for began, ended in spans) for moment, _ in spans]
    assert max(together) <= site.slots  # on a busy machine, a job may end before the next one has begun


def test_a_job_that_measures_time_runs_alone_on_its_machine(site):
    alone = [variant(site.folder, steps.TellAlone(number=site.salt, seconds=0.5), name="alone")]
    _, lookup = build(site, *tells(site, 3, seconds=0.2), *alone)
    [own] = records(lookup, "tell-alone")
    beside = [
        record
        for record in records(lookup, "tell")
        if store_of(record) == store_of(own)
        and record.report["began"] < own.report["ended"]
        and own.report["began"] < record.report["ended"]
    ]
    assert beside == []


def loads(events, taken):
    """What the running jobs take together, after each event: `taken` says how much a job of a step takes."""
    running, every = {}, []
    for event in events:
        if isinstance(event, Started):
            running[event.recipe, event.job] = taken[event.job]
        elif isinstance(event, Ended):
            running.pop((event.recipe, event.job), None)
        every.append(sum(running.values()))
    return every


def is_full(site, events, taken):
    """Whether all slots were in use at some moment, and never more. Ray tells late of a job that lasts a moment."""
    most = max(loads(events, taken))
    tells_late = isinstance(getattr(site, "cluster", None), RayNodes)
    return most <= site.slots if tells_late else most == site.slots


def test_jobs_that_run_together_fit_into_the_memory_of_their_machine(machine, monkeypatch):
    monkeypatch.setattr(steps.TellLarge, "needs_memory", MEMORY * 2 // 3)
    large = tells(machine, 3, seconds=0.2, kind=steps.TellLarge)
    events, _ = build(machine, *large, *tells(machine, 3, seconds=0.2))
    assert [event.state for event in events if isinstance(event, Ended)] == ["built"] * 6
    assert max(loads(events, {"tell-large": 1, "tell": 0})) == 1
    assert is_full(machine, events, {"tell-large": 1, "tell": 1})


def test_a_job_that_keeps_two_cpus_busy_takes_two_slots(machine):
    wide = tells(machine, 3, seconds=0.2, kind=steps.TellWide)
    events, _ = build(machine, *wide, *tells(machine, 2, seconds=0.2))
    assert [event.state for event in events if isinstance(event, Ended)] == ["built"] * 5
    assert is_full(machine, events, {"tell-wide": 2, "tell": 1})


def test_a_job_that_seems_too_large_for_every_machine_runs_with_nothing_beside_it(machine, monkeypatch):
    monkeypatch.setattr(steps.TellLarge, "needs_memory", MEMORY * 10)
    large = tells(machine, 1, kind=steps.TellLarge)
    events, _ = build(machine, *large, *tells(machine, 2))
    assert [event.state for event in events if isinstance(event, Ended)] == ["built"] * 3
    assert is_full(machine, events, {"tell-large": machine.slots, "tell": 1})


def store_of(record):
    """The store in which a job ran: the folder before `staging`."""
    return record.report["place"].partition("/staging/")[0]


def test_a_file_of_the_builder_reaches_the_job(site):
    (site.folder / "words.txt").write_text("hello")
    source = {"uri": f"file:{site.folder / 'words.txt'}"}
    events, lookup = build(site, variant(site.folder, toy.Read(source=source)))
    assert states(events) == {"read": "built"}
    [record] = records(lookup, "read")
    assert content(lookup, record, "text.txt") == "hello"


def test_an_error_of_a_step_comes_back_in_its_own_words_and_with_its_log(site):
    events, lookup = build(site, variant(site.folder, toy.Misbehave(how="raise")))
    [ended] = [event for event in events if isinstance(event, Ended)]
    assert (ended.state, ended.error.what, ended.error.hint) == ("failed", "this cannot be", "do it otherwise")
    assert ended.error.facts == ("fact one",)
    assert "about to misbehave" in lookup.store.log_path(ended.key, failed=True).read_text()


def test_a_job_past_its_time_limit_is_ended(site):
    events, _ = build(site, variant(site.folder, steps.Endless()))
    [ended] = [event for event in events if isinstance(event, Ended)]
    assert "longer than its limit of 1 s" in ended.error.what


def test_the_progress_of_a_running_job_comes_line_by_line_while_it_runs(site):
    """The job goes on when a line has come, so that it never ends if its lines come with its end."""
    seen = site.folder / "seen"
    events, _ = loop(site, variant(site.folder, steps.Gradual(seen=str(seen))))
    log, lines = next_of(events, Started).log, []
    for percent in steps.PERCENTAGES:
        lines.append(f"{percent}%  done")
        until(lambda: lines_of(log) == lines, events)
        seen.with_name(f"seen{percent}").touch()
    assert [event.state for event in events if isinstance(event, Ended)] == ["built"]


def lines_of(log):
    return log.read_text().splitlines() if log.exists() else []


def until(is_true, events, seconds=120):
    """Let the loop go on until something is true. No job may end meanwhile."""
    lookup_executor = events.gi_frame.f_locals["build"].executor
    end = time.monotonic() + seconds
    kept = []
    while not is_true():
        kept += lookup_executor.poll(0.1)
        assert kept == []
        assert time.monotonic() < end


def test_the_peak_memory_of_a_job_is_measured_where_it_runs(site):
    _, lookup = build(site, variant(site.folder, steps.Allocate()))
    [record] = records(lookup, "allocate")
    assert 200 << 20 < record.peak_bytes < 1 << 30


def test_a_worker_that_is_killed_fails_its_job_and_no_other(site):
    mark = site.folder / "mark"
    die, tell = steps.DieOnce(mark=str(mark)), tells(site, 2)
    events, _ = build(site, variant(site.folder, die, name="die"), *tell, keep_going=True)
    ended = {event.recipe: event for event in events if isinstance(event, Ended)}
    assert "was killed from outside" in ended["die"].error.what
    assert (ended["tell0"].state, ended["tell1"].state) == ("built", "built")
    events, _ = build(site, variant(site.folder, die, name="die"))
    assert states(events) == {"die-once": "built"}


def test_an_interrupted_build_leaves_nothing_that_runs(site):
    events, lookup = loop(site, *tells(site, 2, seconds=60))
    next_of(events, Started), next_of(events, Started)
    pids = wait_for(lambda: pids_of_steps(site), 2)
    assert events.throw(KeyboardInterrupt).exit is Exit.INTERRUPTED
    assert list(events) == []
    until_gone(pids)
    assert records(lookup, "tell") == []
    assert not isinstance(site, Here) or list((site.folder / "cache" / "staging").iterdir()) == []


def pids_of_steps(site):
    """The processes that have a folder of this site's stores as their working folder: the workers."""
    return working_folders.pids(lambda place: "/staging/" in place and str(site_root(site)) in place)


def site_root(site):
    return getattr(getattr(site, "cluster", None), "folder", site.folder)


def wait_for(values, count, seconds=30):
    end = time.monotonic() + seconds
    while len(every := values()) < count:
        assert time.monotonic() < end, every
        time.sleep(0.05)
    return every


def until_gone(pids, seconds=30):
    end = time.monotonic() + seconds
    while left := [pid for pid in pids if os.path.exists(f"/proc/{pid}")]:
        assert time.monotonic() < end, left
        time.sleep(0.05)


def test_a_node_that_is_lost_in_mid_job_is_replaced_by_another(cluster):
    events, lookup = loop(cluster, *tells(cluster, 2, seconds=1))
    seen, killed = [], ""
    for event in events:
        seen.append(event)
        if isinstance(event, Started) and not killed:
            killed = event.node
            wait_for(lambda: pids_of_steps(cluster), 1)
            cluster.kill(killed)
    assert [event.state for event in seen if isinstance(event, Ended)] == ["built", "built"], seen
    assert any("runs again" in event.text for event in seen if isinstance(event, Noticed))
    places = {Path(store_of(record)).name for record in records(lookup, "tell")}
    assert places == {"one", "two"} - {killed}


def test_a_node_that_is_silent_and_has_left_the_cluster_is_not_waited_for(two_processes, monkeypatch):
    """With Ray: tests/e2e/test_ray_lost_nodes.py."""
    cluster = two_processes
    monkeypatch.setattr(machines, "_LOOK_SECONDS", 0.1)
    left, right = loop(cluster, *tells(cluster, 1, seconds=600))[0], None
    began = next_of(left, Started)
    silent = cluster.cluster.threads.pop(began.node)
    try:
        assert next_of(left, Noticed).text == (
            f"node {began.node} was lost while it ran 'tell': node {began.node} has left the cluster, "
            "and 'tell' runs again"
        )
        right = next_of(left, Started).node
    finally:
        left.close()
        cluster.cluster.threads[began.node] = silent
    assert {began.node, right} == {"one", "two"}


def test_the_last_node_s_jobs_go_on_where_a_new_node_comes_within_the_time(nodeless):
    site = nodeless
    site.cluster.add("one")
    site.on_notice = lambda text: site.notices.append(text) or site.cluster.add("two")
    events, lookup = loop(site, *tells(site, 2, seconds=1))
    next_of(events, Started)
    site.cluster.kill("one")
    assert [event.state for event in events if isinstance(event, Ended)] == ["built", "built"]
    assert {Path(store_of(record)).name for record in records(lookup, "tell")} == {"two"}
    assert [text.partition(" is left: ")[2] for text in site.notices] == ["the build waits 60 s for a new one"]


def test_a_build_whose_last_node_has_died_ends_with_an_error_that_says_so(nodeless, monkeypatch):
    site = nodeless
    monkeypatch.setattr(machines, "_SUCCESSOR_SECONDS", 2.0)
    site.cluster.add("one")
    events, _ = loop(site, *tells(site, 2, seconds=60), keep_going=True)
    next_of(events, Started)
    site.cluster.kill("one")
    rest = list(events)
    errors = [event.error for event in rest if isinstance(event, Ended)]
    assert len(errors) == 2
    assert all("is left for 'tell'" in error.what and "start a node" in error.hint for error in errors)
    assert all(error.facts == ("one: it has left the cluster",) or "one: " in error.facts[0] for error in errors)
    assert [text.partition(" is left: ")[2] for text in site.notices] == ["the build waits 2 s for a new one"]
    assert rest[-1].exit is Exit.FAILED


def test_a_forced_step_runs_once_more_on_a_node_and_its_record_replaces_the_old_one(cluster):
    twice = [variant(cluster.folder, steps.Tell(number=cluster.salt), name=name) for name in ("r0", "r1")]
    build(cluster, *twice)
    events, lookup = build(cluster, *twice)
    assert sorted(event.state for event in events if isinstance(event, Ended)) == ["cached", "cached"]
    [old] = records(lookup, "tell")
    events, lookup = build(cluster, *twice, force=frozenset({"tell"}))
    assert sorted(event.state for event in events if isinstance(event, Ended)) == ["built", "cached"]
    [new] = records(lookup, "tell")
    assert new.report["began"] > old.report["ended"]
    events, lookup = build(cluster, *twice, store="another")
    assert sorted(event.state for event in events if isinstance(event, Ended)) == ["cached", "cached"]
    assert [record.report for record in records(lookup, "tell")] == [new.report]


def test_a_forced_job_whose_node_is_lost_runs_on_another_that_has_an_old_record(two_processes):
    cluster = two_processes
    build(cluster, *tells(cluster, 1, seconds=1))
    events, lookup = loop(cluster, *tells(cluster, 1, seconds=1), force=frozenset({"tell"}))
    [old] = records(lookup, "tell")
    began = next_of(events, Started)
    wait_for(lambda: pids_of_steps(cluster), 1)
    cluster.kill(began.node)
    assert [event.state for event in events if isinstance(event, Ended)] == ["built"]
    [new] = records(lookup, "tell")
    assert new.report["began"] > old.report["ended"]
    assert Path(store_of(new)).name != began.node


@pytest.mark.parametrize("nodeless", ["processes"], indirect=True)  # the node compares, not its engine
def test_a_node_whose_facts_changed_is_refused_and_its_job_runs_with_a_right_key(nodeless):
    site = nodeless
    site.cluster.add("one", TOY_LETTER="a")
    events, lookup = loop(site, variant(site.folder, toy.Listen()))
    site.cluster.change("one", TOY_LETTER="b")
    site.cluster.add("two", TOY_LETTER="a")
    seen = list(events)
    assert states(seen) == {"listen": "built"}
    assert any(
        "not what it was" in event.text and "TOY_LETTER" in event.text for event in seen if isinstance(event, Noticed)
    )
    [record] = records(lookup, "listen")
    assert (record.key["env.TOY_LETTER"], Path(lookup.store.root).name) == ("a", "cache")
    assert content(lookup, record, "heard") == "a, None"


def test_a_node_whose_driver_and_tool_changed_between_two_jobs_gets_no_further_job(nodeless):
    """Two jobs take both nodes. One of them ends, and its node changes, which alone has room for the third job."""
    if cuda.library("libcuda.so.1") is not None or nvml.library() is not None:
        pytest.skip("this machine has a driver of NVIDIA, which answers for its own GPU")
    site = nodeless
    machines = {name: ChangingMachine(site.folder / f"machine-{name}") for name in ("one", "two")}
    for name, machine in machines.items():
        site.cluster.add(name, **machine.variables)
    gates = {name: site.folder / f"gate-{name}" for name in ("r0", "r1", "r2")}
    jobs = [variant(site.folder, steps.OnT4(gate=str(gate)), name=name) for name, gate in gates.items()]
    events, lookup = loop(site, *jobs)
    short, long = next_of(events, Started), next_of(events, Started)
    assert {short.node, long.node} == machines.keys()
    for name in gates.keys() - {long.recipe}:
        gates[name].touch()
    ended = next_of(events, Ended)
    assert (ended.recipe, ended.state) == (short.recipe, "built")
    machines[short.node].change(driver="590.44.01", tool="2.0")
    third = next_of(events, Started)
    assert third.node == short.node
    refusal = next_of(events, Noticed, Ended)
    differs = f"facts.gpu.driver is 590.44.01, not {DRIVER}, tools.toy-tool is 2.0, not {TOOL}"
    assert refusal == Noticed(f"node {short.node} is not what it was: {differs}, and {third.job!r} runs again")
    gates[long.recipe].touch()
    rest = list(events)
    assert [event.node for event in rest if isinstance(event, Started)] == [long.node]
    assert [(event.recipe, event.state) for event in rest if isinstance(event, Ended)] == [
        (long.recipe, "built"),
        (third.recipe, "built"),
    ]
    rows = [(record.key["facts.gpu.driver"], record.key["tools.toy-tool"]) for record in records(lookup, third.job)]
    assert rows == [(DRIVER, TOOL)] * 3
    assert {content(lookup, record, "tool") for record in records(lookup, third.job)} == {TOOL}


def content(lookup, record, file):
    assert lookup.store.bring(record)
    return (lookup.store.artifact_path(record.artifact) / file).read_text()


def next_of(events, *kinds):
    return next(event for event in events if isinstance(event, kinds))


def test_a_job_has_the_key_of_the_kind_of_node_that_runs_it(nodeless):
    site = nodeless
    site.cluster.add("with", TOY_LETTER="a")
    site.cluster.add("without")
    letters = [variant(site.folder, toy.Listen(), name=name) for name in ("r0", "r1")]
    events, lookup = build(site, *letters)
    assert [event.state for event in events if isinstance(event, Ended)] == ["built", "built"]
    assert not [event for event in events if isinstance(event, Noticed) and "not what it was" in event.text]
    every = records(lookup, "listen")
    assert {record.key.get("env.TOY_LETTER") for record in every} == {"a", None}
    for record in every:
        assert content(lookup, record, "heard") == f"{record.key.get('env.TOY_LETTER')}, None"


def test_a_builder_that_comes_back_uses_what_its_nodes_have_made(cluster):
    events, _ = loop(cluster, *tells(cluster, 3, seconds=0.2))
    next_of(events, Ended)
    events.close()  # as if this builder had been killed: its store is gone, too
    again, lookup = build(cluster, *tells(cluster, 3, seconds=0.2), store="fresh")
    ended = [event.state for event in again if isinstance(event, Ended)]
    assert sorted(ended) in (["built", "built", "cached"], ["built", "cached", "cached"], ["cached"] * 3)
    assert len(records(lookup, "tell")) == 3


def test_an_answer_that_comes_twice_counts_once(site, monkeypatch):
    repeated = []
    if isinstance(site, Here):
        messages = ZygoteHandle.messages

        def twice_here(zygote):
            for message in messages(zygote):
                repeated.append(message)
                yield from (message, message)

        monkeypatch.setattr(ZygoteHandle, "messages", twice_here)
    else:
        engine = site.cluster.engine

        def twice(builder):
            own = engine(builder)
            poll = own.poll

            def polled(timeout):
                pieces = poll(timeout)
                again = list(repeated)
                repeated.extend(piece for piece in pieces if piece.answer is not None)
                return [*pieces, *again, *repeated]

            own.poll = polled
            return own

        monkeypatch.setattr(site.cluster, "engine", twice)
    events, lookup = build(site, *tells(site, 2))
    assert repeated
    assert [event.state for event in events if isinstance(event, Ended)] == ["built", "built"]
    assert len(records(lookup, "tell")) == 2


def test_a_small_record_comes_with_the_answer_and_is_not_asked_for(two_processes):
    site = two_processes
    events, lookup = loop(site, *tells(site, 2))
    looked_up, find = [], lookup.store.tier.find
    lookup.store.tier.find = lambda key: looked_up.append(find(key)) or looked_up[-1]
    assert [event.state for event in events if isinstance(event, Ended)] == ["built", "built"]
    assert looked_up  # before each job
    assert not any(looked_up)
    assert all(record.origin for record in records(lookup, "tell"))


@pytest.mark.parametrize("wrong", ["{}", "of another key"])
def test_an_envelope_that_is_refused_is_asked_for_at_the_remote(two_processes, monkeypatch, wrong):
    site = two_processes
    kept, real = [], NodeAnswer.decode

    def decode(raw):
        answer = real(raw)
        kept.append(answer.envelope)
        return replace(answer, envelope=kept[0] if wrong == "of another key" else wrong)

    monkeypatch.setattr(NodeAnswer, "decode", decode)
    events, lookup = build(site, *tells(site, 2))
    assert [event.state for event in events if isinstance(event, Ended)] == ["built", "built"]
    assert len(set(kept)) == 2
    assert {record.report["place"] for record in records(lookup, "tell")} == places_in(lookup)


def places_in(lookup):
    """The folders in which the jobs ran, as the remote has them: each record under its own key."""
    lookup.store.tier.look_again()
    return {lookup.store.tier.find(record.key).report["place"] for record in records(lookup, "tell")}


def test_two_builders_build_one_key_once(two_processes):  # with Ray: tests/e2e/test_ray.py
    cluster = two_processes
    first, _ = loop(cluster, *tells(cluster, 1, seconds=1), builder="first")
    next_of(first, Started)
    second, _ = loop(cluster, *tells(cluster, 1, seconds=1), store="other", builder="second")
    seen = []
    for event in second:
        seen.append(event)
        if isinstance(event, RunsElsewhere):
            assert [each.state for each in first if isinstance(each, Ended)] == ["built"]
    assert [event.state for event in seen if isinstance(event, Ended)] == ["cached"]
    assert any(isinstance(event, RunsElsewhere) for event in seen)


def test_a_builder_asks_for_a_key_that_another_one_has_a_few_times_a_second_and_the_remote_less_often(two_processes):
    cluster = two_processes
    first, _ = loop(cluster, *tells(cluster, 2, seconds=600), builder="first")
    next_of(first, Started), next_of(first, Started)
    second, lookup = loop(cluster, *tells(cluster, 2, seconds=600), store="other", builder="second")
    claims, requests = Counter(), Counter()
    own, claim = cluster.cluster.claims, cluster.cluster.claims.claim
    own.claim = lambda key, builder: claims.update([key]) or claim(key, builder)
    fetch = lookup.store.tier._fetch
    lookup.store.tier._fetch = lambda key: requests.update([digest_of(key)]) or fetch(key)
    began = time.monotonic()
    try:
        next_of(second, RunsElsewhere), next_of(second, RunsElsewhere)
    finally:
        waited = time.monotonic() - began
        second.close()
        first.close()
        del own.claim
    assert len(claims) == 2
    assert max(claims.values()) <= waited / POLL_SECONDS + 2
    assert max(requests.values()) <= waited / 5 + 2  # the tier remembers for five seconds what was missing
