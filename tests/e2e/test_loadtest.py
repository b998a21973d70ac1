"""`recipe loadtest` of a server that takes its time by plan, and of a real Triton with perf_analyzer beside."""

import json
import os

import generators
import kserve_by_hand
import perf_analyzer_here
import pytest
import triton_server
from program import Program

from engine.kit.triton.serving import Serving
from engine.steps.export import Export
from engine.steps.package import Package

ASK = ("--model", "echo", "--input", "x=[1, 2]", "--with", "own", "--warm-up", "0.2")


@pytest.fixture
def recipe(tmp_path):
    return Program(tmp_path)


def measured(recipe, *words, expect=0):
    return [json.loads(line) for line in recipe("loadtest", *words, "--json", expect=expect).stdout.splitlines()]


# A server by the specification alone, that answers one request after the other


def test_a_slow_server_cannot_hide_its_queue_from_an_open_loop(recipe):
    """Of 100 requests a second one in two must wait for the others; a caller that waits for its answer sees nothing."""
    with kserve_by_hand.server(seconds=0.02) as slow:
        closed, crowded = measured(recipe, slow, *ASK, "--concurrency", "1,4", "--duration", "0.6")
        below, over = measured(recipe, slow, *ASK, "--rate", "10,100", "--arrivals", "constant", "--duration", "0.6")
    service = closed["latency"]["p50_ms"]
    assert crowded["latency"]["p50_ms"] > 2.5 * service
    assert crowded["throughput"] < 1.5 * closed["throughput"]
    assert over["latency"]["p99_ms"] > 15 * service
    assert over["throughput"] < 75
    assert over["requests"] == 60  # all that were planned, whenever they were answered
    assert below["latency"]["p50_ms"] < over["latency"]["p50_ms"] / 3
    assert below["requests"] == 6
    assert all(point["errors"]["count"] == 0 for point in (closed, crowded, over, below))


def test_more_processes_share_the_load(recipe):
    with kserve_by_hand.server(seconds=0.005) as quick:
        closed, opened = (
            measured(recipe, quick, *ASK, *load, "--duration", "0.5", "--processes", "2")[0]
            for load in (("--concurrency", "3"), ("--rate", "40", "--arrivals", "constant"))
        )
    assert closed["client"]["processes"] == opened["client"]["processes"] == 2
    assert closed["requests"] >= 3
    assert opened["requests"] == 20


def test_errors_are_counted_told_and_judged(recipe):
    words = (*ASK, "--concurrency", "2", "--duration", "0.5")
    with kserve_by_hand.server(seconds=0.002, fails=lambda number: number % 4 == 3) as broken:
        (point,) = measured(recipe, broken, *words, "--max-errors", "0.5")
    with kserve_by_hand.server(seconds=0.002, fails=lambda number: number % 4 == 3) as broken:
        done = recipe("loadtest", broken, *words, expect=1)
    assert 0.15 < point["errors"]["share"] < 0.35
    assert list(point["errors"]["messages"]) == ["this one is refused"]
    assert point["latency"]["requests"] == point["requests"] - point["errors"]["count"]
    assert "this one is refused" in done.stdout
    assert "requests failed" in done.stderr
    assert "--max-errors" in done.stderr


def test_a_server_without_statistics_is_measured_without_them(recipe):
    with kserve_by_hand.server() as plain:
        shown = recipe("loadtest", plain, *ASK, "--concurrency", "1,2", "--duration", "0.3", expect=0).stdout
        refused = recipe("query", plain, "--input", "x=[1, 2]", expect=1).stderr
        answer = recipe("query", plain, "--model", "echo", "--input", "x=[1, 2]", "--repeat", "5", expect=0).stdout
    head, columns, *rows = shown.splitlines()
    assert head.startswith("echo at ")
    assert columns.split()[:4] == ["clients", "requests/s", "mean", "p50"]
    assert [row.split()[0] for row in rows if row.split()[-1] == "0"] == ["1", "2"]
    assert "not here" in refused
    assert answer.startswith("y: 1 x 2 float32: 1, 2")


@pytest.mark.sample(2)
@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["--concurrency", "1", "--rate", "5"], "closed loop"),
        (["--concurrency", "8:1:2x"], "does not lead"),
        (["--rate", "fast"], "no list of loads"),
        (["--max-errors", "2"], "no share"),
        (["--duration", "0"], "no number of seconds"),
    ],
)
def test_a_load_that_cannot_be_is_a_wrong_command_line(recipe, words, says):
    assert says in recipe("loadtest", "127.0.0.1:1", "--text", "a", *words, expect=2).stderr


def test_an_unusable_perf_analyzer_is_told_in_its_own_words(recipe, tmp_path):
    broken = tmp_path / "bin" / "perf_analyzer"
    broken.parent.mkdir()
    broken.write_text("#!/bin/sh\necho 'libcudart.so.12: cannot open shared object file' >&2\nexit 127\n")
    broken.chmod(0o755)
    with kserve_by_hand.server() as plain:
        words = (plain, "--model", "echo", "--input", "x=[1, 2]", "--warm-up", "0.1", "--duration", "0.2")
        must = recipe("loadtest", *words, "--perf-analyzer", str(broken), expect=1).stderr
        assert "cannot open shared object file" in must
        assert "nvidia-cuda-runtime" in must
        assert "--with own" in must
        recipe.environment["PATH"] = f"{broken.parent}{os.pathsep}{recipe.environment['PATH']}"
        may = recipe("loadtest", *words, expect=0)
    assert "measured by recipe" in may.stdout
    assert "cannot open shared object file" in may.stderr


# A real Triton


@pytest.fixture(scope="module")
def server(environment, tmp_path_factory):
    folder = tmp_path_factory.mktemp("generates")
    generators.checkpoint(folder / "source", "gpt2")
    Export().run(folder / "exported", checkpoint=folder / "source")
    serving = Serving(model_name="story", ensemble="story_text", largest={"batch": 4}, max_new_tokens=6)
    Package(serving=serving).run(folder / "package", validated=folder / "exported", checkpoint=folder / "source")
    with triton_server.serving(environment, folder / "package") as running:
        yield running


@pytest.fixture(scope="module")
def program(request, tmp_path_factory):
    try:
        return str(
            perf_analyzer_here.program(request.config.cache.mkdir("perf-analyzer"), tmp_path_factory.mktemp("there"))
        )
    except perf_analyzer_here.Unavailable as reason:
        pytest.skip(f"no perf_analyzer here: {reason}")


@pytest.mark.slow
@pytest.mark.parametrize("protocol", ["http", "grpc"])
@pytest.mark.sample(1)
@pytest.mark.whole("test_a_slow_server_cannot_hide_its_queue_from_an_open_loop measures the same way")
def test_generation_is_measured_in_tokens_too_and_the_servers_time_is_shown(recipe, server, protocol):
    address = getattr(server, protocol)
    words = (address, "--model", "story_text", "--text", "Once", "--text", "The cat", "--with", "own", "--batch", "2")
    # The server's counts have the last requests of the warm-up, too: these are few beside those of a second.
    points = measured(recipe, *words, "--concurrency", "1,3", "--duration", "1", "--warm-up", "0.2")
    for point, clients in zip(points, (1, 3), strict=True):
        assert point["concurrency"] == clients
        assert point["errors"]["count"] == 0
        assert point["tokens_per_second"] == pytest.approx(2 * 6 * point["throughput"], rel=0.01)
        entry = point["server"]["story_text"]
        assert entry["requests"] > 0  # Triton counts a request's rows before it counts the request
        assert 0 <= entry["rows"] - 2 * entry["requests"] <= 4 * clients
        assert 0 < entry["total_ms"] < point["latency"]["mean_ms"] * 1.5
        assert point["server"]["story"]["requests"] > entry["requests"]  # a step a token, asked by the python model


@pytest.mark.slow
@pytest.mark.parametrize("protocol", ["http", "grpc"])
@pytest.mark.sample(1)
@pytest.mark.whole("test_a_slow_server_cannot_hide_its_queue_from_an_open_loop measures the same way")
def test_of_a_stream_the_first_piece_and_the_gaps_are_measured(recipe, server, protocol):
    words = (getattr(server, protocol), "--stream", "--text", "Once", "--text", "The cat", "--with", "own")
    points = measured(recipe, *words, "--concurrency", "1,3", "--duration", "1", "--warm-up", "0.2")
    for point in points:
        assert point["model"] == "story_stream"
        assert point["errors"]["count"] == 0
        stream, latency = point["stream"], point["latency"]
        assert 0 < stream["first_p50_ms"] < latency["p50_ms"]
        assert 0 < stream["between_p50_ms"] < latency["p50_ms"]
        assert latency["requests"] < stream["pieces"] <= 6 * latency["requests"]
        assert point["tokens_per_second"] == pytest.approx(6 * point["throughput"], rel=0.01)


@pytest.mark.slow
@pytest.mark.whole("test_a_slow_server_cannot_hide_its_queue_from_an_open_loop measures the same way")
def test_errors_of_streams_are_counted_and_perf_analyzer_is_not_for_them(recipe, server):
    words = (server.grpc, "--model", "story_stream", "--text", "a")
    assert "use --with own" in recipe("loadtest", *words, "--with", "perf_analyzer", expect=2).stderr
    table = recipe("loadtest", *words, "--duration", "0.3", "--warm-up", "0.1", expect=0).stdout
    assert "first p50" in table
    assert "between p95" in table
    refused = recipe("loadtest", *words, "--input", "MAX_NEW_TOKENS=[0]", expect=1).stderr
    assert "is not between 1 and 6" in refused


@pytest.mark.slow
@pytest.mark.whole("test_a_slow_server_cannot_hide_its_queue_from_an_open_loop measures the same way")
def test_perf_analyzer_measures_where_it_is_there(recipe, server, program):
    words = ("--model", "story_text", "--text", "Once", "--text", 'a "quoted" ü', "--duration", "0.3")
    (opened,) = measured(recipe, server.grpc, *words, "--rate", "40", "--perf-analyzer", program)
    recipe.environment["PATH"] += f"{os.pathsep}{os.path.dirname(program)}"
    (closed,) = measured(recipe, server.http, *words, "--concurrency", "2", "--batch", "2")
    for point in (closed, opened):
        assert point["by"].startswith("perf_analyzer 2.")
        assert point["requests"] >= 50
        assert 0 < point["latency"]["p50_ms"] <= point["latency"]["p99_ms"]
        assert point["server"]["story_text"]["requests"] >= point["requests"]
    assert opened["throughput"] == pytest.approx(40, rel=0.4)
    assert closed["server"]["story_text"]["rows"] == 2 * closed["server"]["story_text"]["requests"]


@pytest.mark.slow
@pytest.mark.whole("test_a_slow_server_cannot_hide_its_queue_from_an_open_loop measures the same way")
def test_what_perf_analyzer_says_when_it_fails_is_told(recipe, server, program, tmp_path):
    failing = tmp_path / "perf_analyzer"
    failing.write_text(
        f'#!/bin/sh\n[ "$1" = --version ] || set -- "$@" --request-distribution never\nexec {program} "$@"\n'
    )
    failing.chmod(0o755)
    words = (server.grpc, "--model", "story_text", "--text", "a", "--perf-analyzer", str(failing))
    failed = recipe("loadtest", *words, expect=1).stderr
    assert "perf_analyzer failed" in failed
    assert "request-distribution" in failed
    assert "--with own" in failed
