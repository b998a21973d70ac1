"""Texts of different lengths on a real server: padded to one length, their requests run as one batch."""

import statistics
import time
from concurrent.futures import ThreadPoolExecutor

import models
import numpy as np
import pytest
import triton_server
from tritonclient import grpc

from engine.kit.bench.interleaving import Budget
from engine.kit.triton.serving import Serving
from engine.steps.measure_layouts import MeasureLayouts
from engine.steps.package import Package

pytestmark = pytest.mark.slow

REQUESTS = 16
TIMER_SECONDS = 0.5
"""How long Triton's batcher sleeps where nothing wakes it."""
LENGTHS = {"sequence": (8, 32)}


@pytest.fixture(scope="module")
def source(tmp_path_factory):
    """A text classifier as an ONNX file, with its tokenizer."""
    return models.classifier_with_tokenizer(tmp_path_factory.mktemp("source"))


def answers(server, texts):
    """Send each text in a request of its own, all at once; return the scores of all labels."""

    def ask(text):
        with grpc.InferenceServerClient(server.grpc) as client:
            value = grpc.InferInput("TEXT", [1, 1], "BYTES")
            value.set_data_from_numpy(np.array([[text.encode()]], dtype=object))
            return client.infer("m_text", [value], client_timeout=60).as_numpy("scores")[0]

    with ThreadPoolExecutor(len(texts)) as clients:
        return np.array(list(clients.map(ask, texts)))


def served_at_once(source, environment, folder, texts, *, counted, **options):
    """Serve a package, ask for all texts at once, and return the scores, and how often the model `counted` ran.

    A short wait for further requests lets the number of runs depend on the shapes alone.
    """
    options |= {
        "task": "text-classification", "largest": {"batch": REQUESTS, "sequence": 32},
        "fields": {"dynamic_batching": {"max_queue_delay_microseconds": 500_000}},
    }  # fmt: skip
    Package(serving=Serving(model_name="m", ensemble="m_text", **options)).run(
        folder, validated=source, checkpoint=source
    )
    with triton_server.serving(folder, folder.parent, environment) as server:
        before = triton_server.counts(server, counted)
        scores = answers(server, texts)
        after = triton_server.counts(server, counted)
    assert after[0] - before[0] == REQUESTS
    return scores, after[1] - before[1]


def test_mixed_lengths_share_executions_and_answers_stay_equal(source, environment, tmp_path):
    texts = ["a " * (7 + number) for number in range(REQUESTS)]  # 9 to 24 tokens
    scores, executions = {}, {}
    for padding in ("none", "buckets"):
        scores[padding], executions[padding] = served_at_once(
            source, environment, tmp_path / padding, texts, counted="m", padding=padding, lengths=LENGTHS
        )
    print(executions)
    assert np.allclose(scores["none"], scores["buckets"], atol=1e-6)
    assert executions["none"] == REQUESTS  # each text has another length
    assert executions["buckets"] <= REQUESTS // 4


def test_requests_of_many_lengths_that_one_python_model_gets_at_once_have_their_own_answers(
    source, environment, tmp_path
):
    """The model sends each answer by itself, as soon as it is computed."""
    texts = ["a " * (7 + number % 8) for number in range(REQUESTS)]  # pairs of equal length
    scores, executions = {}, {}
    for layout in ("ensemble", "fused"):
        scores[layout], executions[layout] = served_at_once(
            source, environment, tmp_path / layout, texts, counted="m_text", layout=layout
        )
    assert np.allclose(scores["ensemble"], scores["fused"], atol=1e-6)
    assert len(np.unique(scores["fused"].round(7), axis=0)) > 1  # answers of other texts would be noticed
    assert executions["fused"] <= REQUESTS // 4


@pytest.mark.parametrize("lengths", [range(7, 20), [7] * 13], ids=["mixed lengths", "one length"])
@pytest.mark.sample(1)
def test_requests_at_once_do_not_wait_for_a_timer_of_triton(lengths, source, environment, tmp_path):
    """A limit or a timeout of a queue would let each burst wait for half a second or several."""
    serving = Serving(model_name="m", ensemble="m_text", task="text-classification", largest={"batch": 16})
    Package(serving=serving).run(tmp_path / "package", validated=source, checkpoint=source)
    with triton_server.serving(tmp_path / "package", tmp_path, environment) as server:
        answers(server, ["a"])
        took = []
        for _ in range(10):
            start = time.monotonic()
            answers(server, ["a " * length for length in lengths])
            took.append(time.monotonic() - start)
    assert statistics.median(took) < TIMER_SECONDS


class Quick(MeasureLayouts):
    """The real step, in less time."""

    budget = Budget(seconds=0.5, warm_up=0.2, rounds=4)


def test_padding_is_measured_under_load(source, environment, tmp_path, monkeypatch):
    monkeypatch.setenv("RECIPE_TRITON_VENV", str(environment))
    options = {"task": "text-classification", "largest": {"batch": 16, "sequence": 32}, "padding": "auto"}
    step = Quick(
        serving=Serving(model_name="m", ensemble="m_text", lengths=LENGTHS, **options), threads=1,
        shapes=({"batch": 1, "sequence": 32},),
    )  # fmt: skip
    report = step.run(tmp_path / "out", compiled=source, exported=source, checkpoint=source)
    assert report.absent == {}
    assert {name: len(each.latencies[0].rounds_ms) for name, each in report.paddings.items()} == {
        "none": 4, "buckets": 4,
    }  # fmt: skip
    assert report.server is not None
