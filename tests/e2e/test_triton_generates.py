"""Generation on a real Triton server: over HTTP and gRPC, whole and in pieces, what `generate()` says."""

import json
import queue
import shutil
import threading
import time
import urllib.error
from concurrent.futures import ThreadPoolExecutor

import generators
import numpy as np
import pytest
import triton_server
from generated import Oracle, ask, inputs, joined, pieces, post
from tritonclient import grpc
from tritonclient.utils import InferenceServerException

from engine.kit.accuracy import batching
from engine.kit.accuracy.batching import RowBatching
from engine.kit.onnx import onnx_files
from engine.kit.triton.serving import Serving
from engine.steps.export import Export
from engine.steps.package import Package

pytestmark = [pytest.mark.slow, pytest.mark.whole("test_query.py asks a real server for a package of each kind")]

NEW = 12
LONG = 900
TEXTS = (
    "Once upon a time",
    "ok",
    "",
    "日本語と中文",
    "emoji 😀 and 👩‍🚀!",
    "The dog looked at the cat, who slept on the mat. " * 6,
)
CONFIGS = {
    "gpt2": {"eos_token_id": [0, 54, 26]},
    "opt": {"repetition_penalty": 1.3, "suppress_tokens": [2]},
    "llama": {"no_repeat_ngram_size": 2, "suppress_tokens": list(range(3, 259))},
    "t5": {"no_repeat_ngram_size": 2, "min_new_tokens": 4, "bad_words_ids": [[33], [7, 27]]},
    "bart": {"no_repeat_ngram_size": 3, "forced_bos_token_id": 0, "num_beams": 4},
}
"""What each model's generation_config.json says: every rule is met by one of them. Llama has no tokens of bytes."""
POSITIONS = {"opt": 1024}
MOST = {"opt": LONG}


@pytest.fixture(scope="module")
def built(environment, tmp_path_factory):
    """A checkpoint and a package of every family, and two more of GPT-2.

    Triton does not know the rows of one of them, which has no profile. The other generates each text alone.
    """
    folder = tmp_path_factory.mktemp("generators")
    for family in generators.FAMILIES:
        checkpoint = folder / "checkpoints" / family
        generators.checkpoint(
            checkpoint, family, positions=POSITIONS.get(family, generators.POSITIONS), **CONFIGS[family]
        )
        validated = folder / "exported" / family
        validated.parent.mkdir(exist_ok=True)
        Export().run(validated, checkpoint=checkpoint)
        profiles = {family: {"batch": 8}}
        if family == "gpt2":
            onnx_files.link(validated, folder / "alone")
            batching.write(folder / "alone", RowBatching.ALONE)
            profiles |= {"whole": {}, "alone": {"batch": 8}}
        for name, largest in profiles.items():
            serving = Serving(
                model_name=name, ensemble=f"{name}_text", largest=largest, max_new_tokens=MOST.get(family, NEW)
            )
            package = folder / "packages" / name
            package.parent.mkdir(exist_ok=True)
            model = folder / "alone" if name == "alone" else validated
            Package(serving=serving).run(package, validated=model, checkpoint=checkpoint)
            shutil.copytree(package, folder / "repository", dirs_exist_ok=True)
    return folder


@pytest.fixture(scope="module")
def oracles(built):
    positions = dict.fromkeys(generators.FAMILIES, generators.POSITIONS) | POSITIONS | {"t5": None}
    every = {each: Oracle(built / "checkpoints" / each, each, positions[each]) for each in generators.FAMILIES}
    return every | {"whole": every["gpt2"], "alone": every["gpt2"]}


@pytest.fixture(scope="module")
def server(built, environment):
    with triton_server.serving(environment, built / "repository") as running:
        yield running


@pytest.fixture
def client(server):
    with grpc.InferenceServerClient(server.grpc) as client:
        yield client


@pytest.mark.parametrize("family", [*generators.FAMILIES, "whole", "alone"])
def test_every_text_of_a_batch_gets_the_tokens_and_the_text_of_generate(client, oracles, family):
    answers = ask(client, f"{family}_text", TEXTS, most=NEW)
    assert [(ids, text) for ids, text, _ in answers] == [oracles[family](text) for text in TEXTS]


@pytest.mark.sample(3)
@pytest.mark.parametrize("family", [*generators.FAMILIES, "whole", "alone"])
def test_the_pieces_of_a_stream_joined_are_the_whole_answer(server, oracles, family):
    for text in TEXTS:
        ids, whole, reason = joined(pieces(server, f"{family}_stream", text, most=NEW))
        assert (ids, whole) == oracles[family](text), text
        assert reason == ("stop" if ids[-1] in ends(oracles[family]) else "length")


def ends(oracle):
    ids = oracle.model.generation_config.eos_token_id
    return ids if isinstance(ids, list) else [ids]


def test_http_streams_and_answers_by_the_generate_extension(server, oracles):
    ids, text = oracles["llama"](TEXTS[0], 8)
    body = {"TEXT": TEXTS[0], "MAX_NEW_TOKENS": 8}
    whole = json.loads(post(server, "llama_text/generate", body))
    assert (whole["text"], whole["token_ids"], whole["finish_reason"]) == (text, ids, "length")
    stream = post(server, "llama_stream/generate_stream", body)
    events = [json.loads(line.removeprefix("data: ")) for line in stream.splitlines() if line]
    assert len(events) > 1
    assert "".join(event["text"] for event in events) == text
    assert events[-1]["finish_reason"] == "length"


@pytest.mark.parametrize("family", generators.FAMILIES)
@pytest.mark.sample(2)
def test_64_clients_at_once_each_get_their_own_answer(server, oracles, family):
    answers = {text: oracles[family](text) for text in TEXTS}
    clients = threading.local()

    def one(number):
        if not hasattr(clients, "own"):
            clients.own = grpc.InferenceServerClient(server.grpc)
        text = TEXTS[number % len(TEXTS)]
        return text, ask(clients.own, f"{family}_text", [text], most=NEW)[0][:2]

    with ThreadPoolExecutor(64) as pool:
        for text, answer in pool.map(one, range(64)):
            assert answer == answers[text], text


@pytest.mark.parametrize("family", ["gpt2", "t5"])
@pytest.mark.sample(1)
def test_64_streams_at_once_each_get_their_own_answer(server, oracles, family):
    with ThreadPoolExecutor(64) as pool:
        texts = [TEXTS[number % len(TEXTS)] for number in range(64)]
        streamed = list(pool.map(lambda text: joined(pieces(server, f"{family}_stream", text, most=NEW)), texts))
    assert [answer[:2] for answer in streamed] == [oracles[family](text) for text in texts]


@pytest.mark.parametrize("family", ["gpt2", "bart"])
def test_each_row_has_as_many_tokens_as_it_asks_for(client, oracles, family):
    for most in (1, 3, NEW):
        [(ids, text, _)] = ask(client, f"{family}_text", TEXTS[:1], most=most)
        assert (ids, text) == oracles[family](TEXTS[0], most)
    assert ask(client, f"{family}_text", TEXTS[:1])[0][:2] == oracles[family](TEXTS[0], NEW)


def test_a_model_stops_at_its_end_token_whose_text_is_not_shown(client, oracles):
    answers = ask(client, "gpt2_text", TEXTS)
    stopped = [(ids, text) for ids, text, reason in answers if reason == "stop"]
    assert 0 < len(stopped) < len(TEXTS)
    assert all(ids[-1] in ends(oracles["gpt2"]) and len(ids) <= NEW for ids, _ in stopped)


@pytest.mark.sample(2)
@pytest.mark.parametrize("family", generators.FAMILIES)
def test_a_stop_string_ends_the_answer_and_is_no_part_of_it(server, client, oracles, family):
    oracle = oracles[family]
    prompt = max(TEXTS, key=lambda text: len(oracle(text)[1]))
    ids, text = oracle(prompt)
    stop = next(text[at : at + 2] for at in range(2, len(text)) if "\ufffd" not in text[at : at + 2])
    until = next(end for end in range(len(ids) + 1) if stop in oracle.text(oracle.prompt(prompt, NEW), ids[:end]))
    answer = (ids[:until], text[: text.index(stop)], "stop")
    assert ask(client, f"{family}_text", [prompt], most=NEW, stops=["never this", stop, ""]) == [answer]
    assert joined(pieces(server, f"{family}_stream", prompt, most=NEW, stops=[stop])) == answer


@pytest.mark.parametrize(
    ("more", "why"),
    [
        ({"most": 0}, "MAX_NEW_TOKENS: 0 is not between 1 and 12"),
        ({"most": NEW + 1}, "13 is not between 1 and 12"),
        ({"most": 2**40}, f"{2**40} is not between 1 and 12"),
        ({"text": b"\xff\xfe"}, "TEXT: 'utf-8'"),
        ({"text": b"x" * 1_000_000}, r"TEXT: a text of 1000000 bytes; this model takes at most \d+ bytes"),
        ({"stop": b"\xff"}, "STOP: 'utf-8'"),
    ],
)
def test_a_request_that_cannot_be_is_an_error_of_its_own(server, oracles, more, why):
    given = inputs(TEXTS[:1], most=more.get("most"))
    for name, value in (("TEXT", more.get("text")), ("STOP", more.get("stop"))):
        if value is not None:
            given = [each for each in given if each.name() != name]
            given.append(grpc.InferInput(name, [1, 1], "BYTES"))
            given[-1].set_data_from_numpy(np.array([[value]], dtype=object))

    def one(number):
        with grpc.InferenceServerClient(server.grpc) as client:
            if number % 2:
                return ask(client, "gpt2_text", TEXTS[:1])[0][:2]
            with pytest.raises(InferenceServerException, match=why) as refused:
                client.infer("gpt2_text", given, client_timeout=60)
            assert refused.value.status() == "StatusCode.INVALID_ARGUMENT"
            return None

    with ThreadPoolExecutor(8) as pool:
        streamed = list(pool.map(one, range(8)))
    assert streamed[1::2] == [oracles["gpt2"](TEXTS[0])] * 4


@pytest.mark.parametrize("model", ["gpt2_text/generate", "gpt2_stream/generate_stream"])
def test_a_parameter_that_would_be_ignored_is_refused(server, model):
    body = {"TEXT": TEXTS[0], "MAX_NEW_TOKENS": 4, "num_beams": 2, "Min_P": 0.3, "trace_id": 9}
    with pytest.raises(urllib.error.HTTPError) as refused:
        post(server, model, body)
    assert refused.value.code == 400
    assert "Min_P, num_beams: this model takes no such parameters" in refused.value.read().decode()
    del body["num_beams"], body["Min_P"]
    assert "finish_reason" in post(server, model, body)
    with pytest.raises(urllib.error.HTTPError) as refused:
        post(server, model, {**body, "top_p": 1.5})
    assert refused.value.code == 400
    assert "top_p: 1.5 is no number of at least 0 and at most 1" in refused.value.read().decode()


@pytest.mark.parametrize("model", ["gpt2_text/generate", "gpt2_stream/generate_stream"])
@pytest.mark.parametrize("most", [2**40, 2**32 + 5, -(2**40)])
def test_a_number_of_tokens_beyond_32_bits_is_refused_by_its_own_name(server, model, most):
    with pytest.raises(urllib.error.HTTPError) as refused:
        post(server, model, {"TEXT": TEXTS[0], "MAX_NEW_TOKENS": most})
    assert refused.value.code == 400
    assert f"MAX_NEW_TOKENS: {most} is not between 1 and {NEW}" in refused.value.read().decode()


SAMPLED = {"top_k": 6, "top_p": 0.9, "repetition_penalty": 1.2}


@pytest.mark.parametrize(("family", "temperature"), [("llama", 1.5), ("t5", 20.0)])
def test_sampled_tokens_have_the_distribution_of_the_original(client, oracles, family, temperature):
    """The first token of many rows, against the probabilities that transformers' own warpers leave."""
    rows, rounds = 8, 40
    options = {**SAMPLED, "temperature": temperature}
    expected = oracles[family].first_token(TEXTS[0], **options)
    counts = np.zeros(len(expected))
    for number in range(rounds):
        drawn = ask(client, f"{family}_text", [TEXTS[0]] * rows, most=4, parameters={**options, "seed": number})
        for ids, _, _ in drawn:
            counts[ids[0]] += 1
    assert counts[expected == 0].sum() == 0
    likely = expected > 0
    square = ((counts[likely] - rows * rounds * expected[likely]) ** 2 / (rows * rounds * expected[likely])).sum()
    assert likely.sum() > 2
    assert square < 40, "a chance of less than 1 in 100,000, with at most 6 tokens"


def test_a_seed_repeats_an_answer_alone_and_among_others(client):
    options = {"temperature": 2.0, "seed": 7}
    alone = ask(client, "gpt2_text", [TEXTS[0]], most=NEW, parameters=options)
    assert ask(client, "gpt2_text", [TEXTS[0]], most=NEW, parameters=options) == alone
    together = ask(client, "gpt2_text", [TEXTS[0], TEXTS[0], TEXTS[1]], most=NEW, parameters=options)
    assert together[0] == alone[0]
    assert together[1] != alone[0], "rows of one request draw other numbers"
    assert ask(client, "gpt2_text", [TEXTS[0]], most=NEW, parameters={**options, "seed": 8}) != alone


def test_without_drawing_the_most_likely_tokens_are_taken(client, oracles):
    for options in ({"temperature": 0.0, "top_k": 3}, {"do_sample": False, "seed": 3}, {"top_k": 1}):
        [(ids, text, _)] = ask(client, "gpt2_text", [TEXTS[0]], most=NEW, parameters=options)
        assert (ids, text) == oracles["gpt2"](TEXTS[0])


def steps(client, model):
    [statistics] = client.get_inference_statistics(model).model_stats
    return statistics.inference_count


def test_a_request_that_is_cancelled_stops_computing(server, client):
    got = queue.Queue()
    before = steps(client, "opt")
    with grpc.InferenceServerClient(server.grpc) as other:
        other.start_stream(lambda result, error: got.put(error or result))
        other.async_stream_infer("opt_stream", inputs(TEXTS[:1], most=LONG))
        assert not isinstance(got.get(timeout=60), Exception)
        other.stop_stream(cancel_requests=True)
    seen, end = -1, time.monotonic() + 60
    while (now := steps(client, "opt")) != seen and time.monotonic() < end:
        seen = now
        time.sleep(0.3)
    assert seen == now, "it is still computing"
    assert 0 < seen - before < LONG / 2
