"""Which node a job goes to."""

from hypothesis import given
from hypothesis import strategies as st

from engine.cluster.nodes import ClusterNode, Lane, Nodes, lacks
from engine.cluster.survey import Survey, unusable, version

T4 = "T4 (sm_75) with tensorrt 10.x"
ANY = Lane("", 1, 0, alone=False)
ALONE = Lane("", 1, 0, alone=True)
ON_T4 = Lane(T4, 1, 0, alone=False)


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


def test_a_job_goes_to_the_node_with_most_to_spare():
    small, large = plain("small", 1), plain("large", 4)
    every = nodes_of(small, large)
    chosen = []
    for _ in range(5):
        node = every.best(ANY)
        every.begin(node, ANY)
        chosen.append(node.name)
    assert sorted(chosen) == ["large"] * 4 + ["small"]
    assert every.best(ANY) is None
    every.end(small, ANY)
    assert every.best(ANY) is small


def test_a_job_without_hardware_leaves_the_gpu_to_others_while_it_can():
    every = nodes_of(with_t4("t4", 8), plain("plain", 1))
    first = every.best(ANY)
    every.begin(first, ANY)
    assert (first.name, every.best(ANY).name) == ("plain", "t4")


def test_a_job_with_hardware_goes_where_the_hardware_is():
    every = nodes_of(plain("plain", 8), with_t4("t4", 1))
    assert [node.name for node in every.suited(ON_T4)] == ["t4"]
    every.begin(every.best(ON_T4), ON_T4)
    assert every.best(ON_T4) is None


def test_a_job_that_measures_runs_on_an_idle_node_and_keeps_others_away():
    first, second = plain("a"), plain("b")
    every = nodes_of(first, second)
    every.begin(first, ANY)
    assert every.best(ALONE) is second
    every.begin(second, ALONE)
    assert every.best(ALONE) is None
    every.begin(every.best(ANY), ANY)
    assert every.best(ANY) is None, "the second thread of a node that measures is not free"
    every.end(second, ALONE)
    assert every.best(ANY) is second


def test_a_job_that_needs_more_memory_than_a_node_has_goes_elsewhere():
    every = nodes_of(plain("small", 8, 10), plain("large", 1, 100))
    assert every.best(Lane("", 1, 50, alone=False)).name == "large"
    assert not every.suited(Lane("", 1, 500, alone=False))


def test_a_job_that_seems_too_large_asks_for_the_largest_node_that_has_its_hardware():
    every = nodes_of(plain("wide", 8, 10), plain("large", 2, 200), with_t4("t4", 4))
    assert every.fitted(Lane("", 4, 1000, alone=False)) == Lane("", 2, 200, alone=False)
    assert every.fitted(Lane("", 9, 10, alone=False)) == Lane("", 8, 10, alone=False)
    assert every.fitted(Lane(T4, 1, 150, alone=False)) == Lane(T4, 4, 100, alone=False)
    assert every.fitted(Lane("L4", 1, 150, alone=False)) == Lane("L4", 1, 150, alone=False)
    every.remove("large")
    assert every.fitted(Lane("", 4, 150, alone=False)) == Lane("", 4, 100, alone=False)


def test_a_node_with_trouble_or_another_version_gets_no_job():
    bad = [
        ClusterNode("silent", "silent", 2, 100),
        ClusterNode("wrong", "wrong", 2, 100, survey=unusable("it may not push")),
        ClusterNode("old", "old", 2, 100, survey=survey(version="recipe-build 0.0.1")),
    ]
    assert not nodes_of(*bad).suited(ANY)
    reasons = lacks(bad, "")
    assert reasons["silent"] == "the node has not answered"
    assert reasons["wrong"] == "it may not push"
    assert "recipe-build 0.0.1" in reasons["old"]


LANES = [ANY, ALONE, ON_T4, Lane("", 2, 0, alone=False), Lane("", 1, 60, alone=False)]


@given(st.lists(st.tuples(st.integers(0, 4), st.sampled_from(LANES), st.booleans()), max_size=60))
def test_no_node_is_oversubscribed_whatever_begins_and_ends(steps):
    every = nodes_of(plain("a", 1), plain("b", 3), with_t4("c", 2), with_t4("d", 3, gpus=1))
    running = []
    for number, lane, ends in steps:
        if ends and running:
            node, own = running.pop(number % len(running))
            every.end(node, own)
        elif (node := every.best(lane)) is not None:
            every.begin(node, lane)
            running.append((node, lane))
        for node in every:
            own = [each for place, each in running if place is node]
            assert sum(each.threads for each in own) <= node.threads
            assert sum(each.memory for each in own) <= node.memory
            assert not node.gpus or sum(each == ON_T4 for each in own) <= node.gpus
            assert len(own) <= 1 or not any(each.alone for each in own)
        for each in LANES:  # the ranking knows a node with room whenever there is one
            assert (every.best(each) is not None) == any(node.has_room(each) for node in every.suited(each))


def test_a_ranking_stays_small_however_many_jobs_have_run():
    every = nodes_of(plain("a", 4), plain("b", 4))
    lanes = [Lane("", 1, memory, alone=False) for memory in range(3)]
    for lane in lanes * 200:
        node = every.best(lane)
        every.begin(node, lane)
        every.end(node, lane)
    assert all(len(ranking._entries) <= 2 * 8 + 2 for ranking in every._rankings.values())
    assert {every.best(lane).name for lane in lanes} <= {"a", "b"}
