"""Which nodes a job goes to, and how many jobs they take."""

from engine.builder.executors.executor import Demand
from engine.cluster.nodes import ClusterNode, Nodes, lack_lines
from engine.cluster.survey import Survey, unusable, version

T4 = "T4 (sm_75) with tensorrt 10.x"
ANY = Demand("", 1, 0, alone=False)
ALONE = Demand("", 1, 0, alone=True)
ON_T4 = Demand(T4, 1, 0, alone=False)


def survey(**fields):
    own = {"version": version(), "remote": "r", "trouble": "", "machine": {}, "tools": {}, "variables": {}}
    return Survey(**{**own, "lacks": {T4: "no such GPU"}, "facts": {}, **fields})


def nodes_of(*nodes):
    nodes_ = Nodes()
    for node in nodes:
        nodes_.add(node)
    return nodes_


def plain(name, threads=2, memory=100):
    return ClusterNode(name, name, threads, memory, survey=survey())


def with_t4(name, threads=2, gpus=0):
    return ClusterNode(name, name, threads, 100, gpus, survey=survey(lacks={T4: ""}))


def names(every, lane):
    return [[node.name for node in every.pools(lane)[kind]] for kind in every.kinds(lane)]


def test_a_kind_of_node_takes_as_many_jobs_as_its_nodes_have_threads_all_together():
    small, large = plain("small", 1), plain("large", 4)
    every = nodes_of(small, large)
    for _ in range(5):
        assert every.has_room(ANY)
        every.begin(small.kind, ANY)
    assert not every.has_room(ANY)
    every.end(small.kind, ANY)
    assert every.has_room(ANY)
    every.remove("large")
    assert not every.has_room(ANY)


def test_a_job_without_hardware_leaves_the_gpu_to_others_while_it_can():
    t4, other = with_t4("t4", 8), plain("plain", 1)
    every = nodes_of(t4, other)
    assert names(every, ANY) == [["plain"], ["t4"]]
    every.begin(other.kind, ANY)
    assert names(every, ANY) == [["t4"], ["plain"]]


def test_a_job_with_hardware_goes_where_the_hardware_is():
    every = nodes_of(plain("plain", 8), with_t4("t4", 1))
    assert names(every, ON_T4) == [["t4"]]
    every.begin(*every.kinds(ON_T4), ON_T4)
    assert not every.has_room(ON_T4)
    assert every.has_room(ANY)


def test_a_gpu_whose_use_is_counted_has_one_job_at_a_time():
    every = nodes_of(with_t4("t4", 8, gpus=1))
    every.begin(*every.kinds(ON_T4), ON_T4)
    assert not every.has_room(ON_T4)
    assert every.has_room(ANY)


def test_memory_is_room_as_threads_are():
    every = nodes_of(plain("one", 8, 100))
    half = Demand("", 1, 60, alone=False)
    every.begin(*every.kinds(half), half)
    assert not every.has_room(half)
    assert every.has_room(ANY)


def test_a_job_that_measures_takes_all_threads_of_a_node_that_has_most():
    every = nodes_of(plain("small", 2), plain("large", 8))
    lane = every.fitted(ALONE)
    assert lane.threads == 8
    assert names(every, lane) == [["large"]]


def test_a_job_that_needs_more_memory_than_a_node_has_goes_elsewhere():
    every = nodes_of(plain("small", 8, 10), plain("large", 1, 100))
    assert names(every, Demand("", 1, 50, alone=False)) == [["large"]]
    assert not every.pools(Demand("", 1, 500, alone=False))


def test_a_job_that_seems_too_large_asks_for_the_largest_node_that_has_its_hardware():
    every = nodes_of(plain("wide", 8, 10), plain("large", 2, 200), with_t4("t4", 4))
    assert every.fitted(Demand("", 4, 1000, alone=False)) == Demand("", 2, 200, alone=False)
    assert every.fitted(Demand("", 9, 10, alone=False)) == Demand("", 8, 10, alone=False)
    assert every.fitted(Demand(T4, 1, 150, alone=False)) == Demand(T4, 4, 100, alone=False)
    assert every.fitted(Demand("L4", 1, 150, alone=False)) == Demand("L4", 1, 150, alone=False)
    every.remove("large")
    assert every.fitted(Demand("", 4, 150, alone=False)) == Demand("", 4, 100, alone=False)


def test_a_node_with_trouble_or_another_version_gets_no_job():
    bad = [
        ClusterNode("silent", "silent", 2, 100),
        ClusterNode("wrong", "wrong", 2, 100, survey=unusable("it may not push")),
        ClusterNode("old", "old", 2, 100, survey=survey(version="recipe-build 0.0.1")),
    ]
    assert not nodes_of(*bad).pools(ANY)
    silent, wrong, old = lack_lines(bad, "")
    assert silent == "silent: the node has not answered"
    assert wrong == "wrong: it may not push"
    assert "recipe-build 0.0.1" in old
