"""Which jobs of two sides differ and why."""

from dataclasses import replace

import pytest

from engine.builder import difference
from engine.builder.diff_sides import Side, SideJob, SideVariant
from engine.builder.difference import Amount, JobChange, LatencyChange, LatencyVerdict, latency_changes
from engine.key import Change
from engine.store.history import HeadlineFigures, MeasuredLatency


def job(key, *needs, stored=True, **more):
    rows = None if key is None else dict(row.split("=") for row in key.split())
    return SideJob(rows, {name: name for name in needs}, is_stored=stored, **more)


def variant(name="x", label="", figures=None, **jobs):
    named = {each.replace("_", "-"): value for each, value in jobs.items()}
    return SideVariant(name, label, named, figures or HeadlineFigures())


def compared(old, new):
    [only] = difference.of(Side("a", (old,)), Side("b", (new,))).variants
    return only


def changed(old, new):
    return {each.job: each.change for each in compared(old, new).jobs}


def test_equal_sides_differ_in_nothing():
    side = variant(fetch=job("code=1"), fuse=job("code=1 inputs.fetch=f", "fetch"))
    assert compared(side, side).is_none


def test_a_changed_row_is_the_cause_and_what_reads_the_output_follows():
    old = variant(fetch=job("options.a=1"), fuse=job("inputs.fetch=f", "fetch"), end=job("inputs.fuse=g", "fuse"))
    new = variant(fetch=job("options.a=2"), fuse=job("inputs.fetch=h", "fetch"), end=job("inputs.fuse=g", "fuse"))
    assert changed(old, new) == {"fetch": JobChange.CHANGED, "fuse": JobChange.FOLLOWS, "end": JobChange.SAME}
    assert compared(old, new).jobs[0].rows == (Change("options.a", "1", "2"),)


def test_a_job_behind_one_that_has_not_run_may_follow():
    old = variant(fetch=job("options.a=1"), fuse=job("inputs.fetch=f", "fetch"), other=job("code=1"))
    new = variant(fetch=job("options.a=2", stored=False), fuse=job("code=", "fetch", stored=False), other=job("code=1"))
    new.jobs["fuse"].key.clear()
    old.jobs["fuse"].key.clear()
    assert changed(old, new) == {"fetch": JobChange.CHANGED, "fuse": JobChange.MAY_FOLLOW, "other": JobChange.SAME}
    assert [each.job for each in compared(old, new).to_build] == ["fetch", "fuse"]


def test_jobs_of_one_side_only_and_jobs_without_a_key_are_named():
    old, new = variant(gone=job("code=1"), lost=job("code=1")), variant(new=job("code=1"), lost=job(None, error="no"))
    assert changed(old, new) == {"new": JobChange.ADDED, "lost": JobChange.UNKNOWN, "gone": JobChange.REMOVED}
    assert [each.error for each in compared(old, new).jobs if each.job == "lost"] == ["no"]


@pytest.mark.parametrize(
    ("old", "new", "pairs"),
    [
        ([("a", "")], [("b", "")], ["a -> b"]),
        ([("a", "p=1"), ("b", "p=2")], [("b", "p=2"), ("a", "p=1")], ["b", "a"]),
        ([("a-1", "p=1"), ("a-2", "p=2")], [("b-1", "p=1"), ("b-2", "p=2")], ["a-1 -> b-1", "a-2 -> b-2"]),
        ([("a", ""), ("b", "")], [("a", "")], ["a", "b"]),
    ],
    ids=["two single variants", "by name", "by the matrix", "one is gone"],
)
def test_variants_are_paired(old, new, pairs):
    sides = [Side("s", tuple(variant(*each) for each in side)) for side in (old, new)]
    assert [each.name for each in difference.of(*sides).variants] == pairs


def test_figures_and_latencies_of_both_sides_are_compared():
    def figures(size, p50, **more):
        latency = MeasuredLatency(place="batch 1", p50_ms=p50, interval=(p50, p50))
        return HeadlineFigures(size=size, cosine=0.9, latencies=(latency,), **more)

    old = variant(figures=figures(100, 2.0, device="one"))
    new = variant(figures=figures(50, 1.0, metrics={"accuracy": 0.5}, device="two"))
    result = compared(old, new)
    assert result.amounts == (
        Amount("size", 100, 50), Amount("cosine", 0.9, 0.9), Amount("accuracy", None, 0.5),
    )  # fmt: skip
    assert [each.ratio for each in result.latencies] == [0.5]
    assert result.devices == ("one", "two")


def latency(p50, low, high, place="batch 1"):
    return MeasuredLatency(place=place, p50_ms=p50, interval=(low, high))


@pytest.mark.parametrize(
    ("new", "verdict", "words"),
    [
        ((1.0, 0.95, 1.05), LatencyVerdict.FASTER, "-50.0% (-54.8% to -44.7%)"),
        ((4.0, 3.8, 4.2), LatencyVerdict.SLOWER, "+100.0% (+81.0% to +121.1%)"),
        ((1.9, 1.8, 2.0), LatencyVerdict.WITHIN_NOISE, "within noise (-14.3% to +5.3%)"),
    ],
)
def test_only_intervals_without_a_common_value_are_a_difference(new, verdict, words):
    change = LatencyChange(latency(2.0, 1.9, 2.1), latency(*new))
    assert change.verdict is verdict
    assert change.in_words() == words
    assert change.band[0] < change.ratio == new[0] / 2 < change.band[1]


def test_a_latency_of_a_busy_machine_gives_no_verdict():
    calm, busy = latency(2.0, 1.9, 2.1), replace(latency(9.0, 8.9, 9.1), busy=True)
    for change in (LatencyChange(calm, busy), LatencyChange(busy, calm)):
        assert (change.verdict, change.in_words()) == (LatencyVerdict.NOT_COMPARABLE, "busy: no verdict")


def test_a_latency_of_zero_gives_no_ratio():
    change = LatencyChange(latency(0.0, 0.0, 0.0), latency(1.0, 1.0, 1.0))
    assert (change.ratio, change.verdict) == (1.0, LatencyVerdict.WITHIN_NOISE)


def test_only_places_that_both_measured_are_compared():
    old = HeadlineFigures(latencies=(latency(2, 2, 2), latency(9, 9, 9, "batch 9")))
    new = HeadlineFigures(latencies=(latency(3, 3, 3, "batch 3"), latency(1, 1, 1)))
    assert [each.new.place for each in latency_changes(old, new)] == ["batch 1"]
