"""The order of jobs by their expected durations."""

from hypothesis import given
from hypothesis import strategies as st

from engine.builder.schedule import UNKNOWN_SECONDS, Lanes, Queue, urgencies


def test_a_job_is_as_urgent_as_the_longest_way_behind_it():
    jobs = [("fetch", []), ("export", ["fetch"]), ("bench", ["export"]), ("quick", ["fetch"])]
    seconds = {"fetch": 1.0, "export": 10.0, "bench": 30.0, "quick": 0.5}
    assert urgencies(jobs, seconds) == {"bench": 30.0, "export": 40.0, "quick": 0.5, "fetch": 41.0}


def test_a_job_that_was_never_run_counts_as_an_ordinary_one():
    assert urgencies([("new", [])], {}) == {"new": UNKNOWN_SECONDS}


@given(st.lists(st.tuples(st.floats(0, 100), st.lists(st.integers(0, 30)))))
def test_what_is_needed_is_at_least_as_urgent_as_what_needs_it(drawn):
    jobs = [(number, [need for need in needs if need < number]) for number, (_, needs) in enumerate(drawn)]
    urgent = urgencies(jobs, {number: seconds for number, (seconds, _) in enumerate(drawn)})
    for name, needs in jobs:
        assert all(urgent[need] >= urgent[name] for need in needs)


def test_the_queue_gives_the_most_urgent_first_and_among_equals_the_first():
    queue = Queue()
    for name, urgency in (("a", 1.0), ("b", 5.0), ("c", 1.0), ("d", 5.0)):
        queue.add(name, urgency)
    assert [queue.take() for _ in range(len(queue))] == ["b", "d", "a", "c"]


def test_of_the_lanes_with_room_the_one_with_the_most_urgent_item_is_next():
    lanes = Lanes()
    for name, urgency, lane in (("a", 1.0, "x"), ("b", 5.0, "y"), ("c", 3.0, "x"), ("d", 3.0, "z")):
        lanes.add(name, urgency, lane)
    assert lanes.take(lambda lane: lane != "y") == "c", "as urgent as d, and earlier"
    assert [lanes.take() for _ in range(4)] == ["b", "d", "a", None]


def test_a_lane_without_room_keeps_its_items():
    lanes = Lanes()
    lanes.add("a", 1.0, "x")
    assert lanes.take(lambda _: False) is None
    assert lanes.take() == "a"
