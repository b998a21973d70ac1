"""Texts of different lengths on a real server: padded to one length, their requests run as one batch."""

import time
from concurrent.futures import ThreadPoolExecutor

import models
import numpy as np
import pytest
import triton_server

from engine.kit.triton.serving import Serving
from engine.steps.package import Package

pytestmark = [pytest.mark.slow, pytest.mark.whole("test_query.py asks a real server for a package of each kind")]

REQUESTS = 16
TIMER_SECONDS = 0.5
"""How long Triton's batcher sleeps where nothing wakes it."""
LENGTHS = {"sequence": (8, 32)}


@pytest.fixture(scope="module")
def source(tmp_path_factory):
    """A text classifier as an ONNX file, with its tokenizer."""
    return models.classifier_with_tokenizer(tmp_path_factory.mktemp("source"))


SERVED = {
    "none": {"padding": "none", "lengths": LENGTHS},
    "buckets": {"padding": "buckets", "lengths": LENGTHS},
    "ensemble": {"layout": "ensemble"},
    "fused": {"layout": "fused"},
    "unchanged": {},
}
"""How each package of the server is served. `unchanged` has no wait for further requests; the others have a short one,
so that the number of runs depends on the shapes alone."""
WAIT = {"dynamic_batching": {"max_queue_delay_microseconds": 500_000}}


@pytest.fixture(scope="module")
def server(source, environment, tmp_path_factory):
    """One server of all packages: a request to one of them leaves the others alone."""
    folder = tmp_path_factory.mktemp("packages")
    for name, options in SERVED.items():
        own = {"fields": {} if name == "unchanged" else WAIT, "largest": {"batch": REQUESTS, "sequence": 32}, **options}
        serving = Serving(model_name=name, ensemble=f"{name}_text", task="text-classification", **own)
        Package(serving=serving).run(folder / name, validated=source, checkpoint=source)
    with triton_server.serving(environment, *(folder / name for name in SERVED)) as running:
        yield running


def answers(server, entry, texts):
    """Send each text in a request of its own, all at once; return the scores of all labels."""

    def ask(text):
        return triton_server.infer(server, entry, TEXT=triton_server.texts(text))["scores"][0]

    with ThreadPoolExecutor(len(texts)) as clients:
        return np.array(list(clients.map(ask, texts)))


def scores_and_runs(server, entry, texts, *, counted):
    """Ask for all texts at once; return the scores, and how often the model `counted` ran."""
    before = triton_server.counts(server, counted)
    scores = answers(server, entry, texts)
    after = triton_server.counts(server, counted)
    assert after[0] - before[0] == REQUESTS
    return scores, after[1] - before[1]


def test_mixed_lengths_share_executions_and_answers_stay_equal(server):
    texts = ["a " * (7 + number) for number in range(REQUESTS)]  # 9 to 24 tokens
    scores, executions = {}, {}
    for padding in ("none", "buckets"):
        scores[padding], executions[padding] = scores_and_runs(server, f"{padding}_text", texts, counted=padding)
    print(executions)
    assert np.allclose(scores["none"], scores["buckets"], atol=1e-6)
    assert executions["none"] == REQUESTS  # each text has another length
    assert executions["buckets"] <= REQUESTS // 4


def test_requests_of_many_lengths_that_one_python_model_gets_at_once_have_their_own_answers(server):
    """The model sends each answer by itself, as soon as it is computed."""
    texts = ["a " * (7 + number % 8) for number in range(REQUESTS)]  # pairs of equal length
    scores, executions = {}, {}
    for layout in ("ensemble", "fused"):
        entry = f"{layout}_text"
        scores[layout], executions[layout] = scores_and_runs(server, entry, texts, counted=entry)
    assert np.allclose(scores["ensemble"], scores["fused"], atol=1e-6)
    assert len(np.unique(scores["fused"].round(7), axis=0)) > 1  # answers of other texts would be noticed
    assert executions["fused"] <= REQUESTS // 4


@pytest.mark.parametrize("lengths", [range(7, 20), [7] * 13], ids=["mixed lengths", "one length"])
def test_requests_at_once_do_not_wait_for_a_timer_of_triton(lengths, server):
    """A limit or a timeout of a queue would let each burst wait for half a second or several."""
    answers(server, "unchanged_text", ["a"])
    took = []
    for _ in range(10):
        start = time.monotonic()
        answers(server, "unchanged_text", ["a " * length for length in lengths])
        took.append(time.monotonic() - start)
    assert min(took) < TIMER_SECONDS, "each burst waits; a busy machine delays only some"
