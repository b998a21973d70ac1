"""Folded lines: jobs that need no attention are counted, and all others are not."""

from engine.errors import StepError
from engine.events import Arrival, Ended, Gap
from engine.report.folding import Folded


def test_cached_jobs_are_one_line_and_waiting_ones_a_line_for_each_device():
    folded = Folded()
    for variant in ("a", "b"):
        for job in ("export", "fuse"):
            assert folded.take(Ended(variant, job, "cached"))
        assert folded.take(Ended(variant, "trt-build", "waiting", waits_for="T4", advice="run it there"))
    assert folded.take(Ended("a", "bench", "waiting", waits_for="L4", advice="run it there"))
    assert folded.take(Ended("a", "package", "skipped"))
    assert folded.lines() == [
        "cached   4 jobs of 2 variants",
        "waiting  2 jobs for T4; run it there",
        "waiting  1 job for L4; run it there",
        "skipped  1 job of 1 variant, because an earlier job failed or waits",
    ]


def test_news_is_never_folded():
    folded = Folded()
    news = (
        Ended("a", "fuse", "built"),
        Ended("a", "fuse", "failed", error=StepError("wrong")),
        Ended("a", "fuse", "cached", arrival=Arrival(1.0, "T4")),
        Ended("a", "fuse", "cached", gaps=(Gap("file", "x"),)),
    )
    assert not any(map(folded.take, news))
    assert folded.lines() == []
