"""What a package costs on a real Triton beyond its own work, as a multiple of the same chain doing nothing."""

import contextlib
import importlib.util
import math
import sys
import time
from pathlib import Path

import models
import pytest

from engine.kit.triton.serving import Serving
from engine.steps.export import Export
from engine.steps.package import Package

pytestmark = [pytest.mark.slow, pytest.mark.whole("test_query.py asks a real server for a package of each kind")]

BENCHMARKS = Path(__file__).parent.parent.parent / "benchmarks"
MOST = 1.2
"""Times what a chain that does nothing takes on the same server."""
ATTEMPTS = 4


@pytest.fixture(scope="module")
def benchmark():
    """The benchmark itself, and the server for it."""
    sys.path.insert(0, str(BENCHMARKS))
    try:
        yield importlib.import_module("ensemble_overhead")
    finally:
        sys.path.remove(str(BENCHMARKS))


@pytest.fixture(scope="module")
def package(tmp_path_factory, benchmark):
    """The package of a classifier with two layers."""
    folder = tmp_path_factory.mktemp("overhead")
    checkpoint = models.checkpoint(folder / "checkpoint", "bert", task="text-classification")
    Export().run(folder / "exported", checkpoint=checkpoint)
    threads = {"parameters": {"intra_op_thread_count": {"string_value": "1"}}}
    serving = Serving(model_name="tiny", ensemble="tiny_text", largest={"batch": 8, "sequence": 32}, fields=threads)
    Package(serving=serving).run(folder / "package", validated=folder / "exported", checkpoint=checkpoint)
    return benchmark.served.package(folder / "package")


@pytest.fixture(scope="module")
def installed(environment):
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("RECIPE_TRITON_VENV", str(environment))
        yield


def test_a_package_costs_little_more_than_a_chain_that_does_nothing(benchmark, package, installed, tmp_path):
    """The least of several attempts counts: neighbours can only make it look worse."""
    ratios = []
    while len(ratios) < ATTEMPTS and min(ratios, default=math.inf) > MOST:
        folder = tmp_path / str(len(ratios))
        folder.mkdir()
        rounds, about = benchmark.measure(package, folder, tokens=16, rounds=16, calls=20, fastapi=False)
        ratios.append(benchmark.overhead(rounds)[0])
    assert min(ratios) <= MOST, ratios
    report = benchmark.report(rounds, about, 16)
    assert "the time of the chain that does nothing" in report
    assert "stand-in" in report


def test_fastapi_answers_what_the_model_answers_in_this_process(benchmark, package):
    for name in ("fastapi", "uvicorn"):
        if importlib.util.find_spec(name) is None:
            pytest.skip(f"{name} is not installed: pip install fastapi uvicorn")
    here = package.by_hand(threads=1)
    with benchmark.served.fastapi(package, threads=1) as address, benchmark.over_http(address) as ask:
        for text in package.texts(16, rows=3):
            assert ask(text).tolist() == pytest.approx(here(text).tolist(), abs=1e-5)


def test_work_of_the_package_s_own_would_show(benchmark):
    """The ratio is of what is left when the work is taken off: as much again as the chain that does nothing is 2."""
    rounds = {benchmark.HERE: [1.0, 2.0], benchmark.OURS: [3.0, 4.0], benchmark.NOTHING: [1.0, 1.0]}
    assert benchmark.overhead(rounds)[0] == 2.0


def test_a_closed_loop_counts_what_was_answered_and_tells_what_failed(benchmark):
    """The load generator of why_triton.py."""
    why_triton = importlib.import_module("why_triton")
    requests = []

    def ask(text):
        requests.append(text)
        time.sleep(0.01)

    took = why_triton.closed_loop(lambda: contextlib.nullcontext(ask), ["a", "b"], 4, 0.2)
    assert len(took.seconds) == len(requests) - 4 * 2  # the first two of each client do not count
    assert min(took.seconds) >= 0.01
    assert took.rate <= 4 / 0.01
    with pytest.raises(ZeroDivisionError):
        why_triton.closed_loop(lambda: contextlib.nullcontext(lambda _: 1 / 0), ["a"], 2, 0.2)
