"""A job begins in the same state whatever jobs have run before: the same key gives the same bytes."""

import time

import pytest

from engine.builder.executors.local import LocalExecutor
from engine.builder.worker_task import WorkerTask


class Jobs:
    """Runs one job after the other on one slot."""

    def __init__(self, folder):
        self.executor = LocalExecutor(1)
        self.folder = folder
        self.count = 0

    def content(self, how, *, tools=()):
        """Return what a job wrote."""
        self.count += 1
        place = self.folder / str(self.count)
        place.mkdir()
        task = WorkerTask("tampering:Tamper", "tamper", {"how": how}, {}, str(place / "out"), str(place / "log"))
        self.executor.submit(self.count, task, tools=tools, variables=(), time_limit=60)
        end = time.monotonic() + 60
        while time.monotonic() < end:
            for _, outcome in self.executor.poll():
                assert outcome.error is None, (outcome.error, (place / "log").read_text())
                return (place / "out" / "text.txt").read_text()
        raise AssertionError("no outcome")


@pytest.fixture(scope="module")
def jobs(tmp_path_factory):
    runner = Jobs(tmp_path_factory.mktemp("tampering"))
    yield runner
    runner.executor.close()


def test_no_job_begins_with_what_another_job_changed(jobs):
    before = jobs.content("nothing")
    assert jobs.content("everything") == before  # a job writes its view down first
    assert jobs.content("nothing") == before


@pytest.mark.slow
@pytest.mark.whole("the modules of every job, in the test above")
def test_no_job_begins_with_what_another_job_changed_in_a_tool(jobs):
    pytest.importorskip("torch")
    before = jobs.content("nothing", tools=("torch",))
    assert jobs.content("torch", tools=("torch",)) == before
    assert jobs.content("nothing", tools=("torch",)) == before
    assert jobs.content("nothing") != before  # a job that names no tool begins without the tool
