"""`recipe query` and other programs' clients against a real Triton server that serves packages of ours."""

import asyncio
import functools
import json
import os
import signal
import subprocess
import sys
import time

import front
import generators
import graphs
import kserve_by_hand
import models
import numpy as np
import pytest
import timm_here
import triton_server
from PIL import Image
from program import Program

from engine import cli
from engine.client import curl, figures
from engine.client.client import Client
from engine.kit.triton.serving import Serving
from engine.recipe.image_input import Images
from engine.runtimes.onnxruntime import session as ort
from engine.steps.export import Export
from engine.steps.package import Package

pytestmark = pytest.mark.slow

TEXTS = ("the film was good", 'it\'s a "quoted" $HOME `film`', "", "日本語 und schön 🎬")
LARGEST = {"batch": 4, "sequence": 48}


@pytest.fixture(scope="module")
def packages(tiny_bert, timm, environment, tmp_path_factory):
    """One package a kind of entry: texts and pairs, questions, images, generation, and tensors alone."""
    folder = tmp_path_factory.mktemp("packages")
    questions = models.checkpoint(folder / "questions-source", "bert", task="question-answering")
    timm_here.checkpoint(folder / "photo-source", "test_efficientnet", size=64, num_classes=4)
    generators.checkpoint(folder / "story-source", "gpt2")
    images = Images(layout="NCHW", size=(64, 64), library="timm")
    for name, source, ensemble, more in (
        ("labels", tiny_bert, "labels_text", {"task": "text-classification"}),
        ("questions", questions, "questions_text", {"task": "question-answering"}),
        ("photo", folder / "photo-source", "photo_image", {"images": images}),
        ("story", folder / "story-source", "story_text", {"max_new_tokens": 12}),
    ):
        exported = folder / f"{name}-exported"
        Export(**{key: value for key, value in more.items() if key != "max_new_tokens"}).run(
            exported, checkpoint=source
        )
        serving = Serving(model_name=name, ensemble=ensemble, largest=LARGEST, **more)
        Package(serving=serving).run(folder / name, validated=exported, checkpoint=source)
    tiny = graphs.write(folder / "layers-source", graphs.layers())
    Package(serving=Serving(model_name="layers", ensemble="layers_text", largest=LARGEST)).run(
        folder / "layers", validated=tiny, checkpoint=tiny
    )
    return folder


@pytest.fixture(scope="module")
def server(packages, environment):
    names = ("labels", "questions", "photo", "story", "layers")
    with triton_server.serving(environment, *(packages / name for name in names)) as running:
        yield running


@pytest.fixture(params=["http", "grpc"])
def url(request, server):
    return f"{request.param}://{getattr(server, request.param)}"


@pytest.fixture
def recipe(tmp_path):
    return Program(tmp_path)


@pytest.fixture
def foreign(server):
    return kserve_by_hand.Client(server.http)


@pytest.fixture
def photo(tmp_path):
    noise = np.random.default_rng(0).integers(0, 255, (50, 70, 3), dtype=np.uint8)
    Image.fromarray(noise).save(tmp_path / "it's a photo.png")
    return tmp_path / "it's a photo.png"


def query(recipe, *words):
    """What `recipe query --json` says."""
    return json.loads(recipe("query", *words, "--json", expect=0).stdout)


def texts(*rows):
    return {"TEXT": ("BYTES", [1, len(rows)], list(rows))}


# What is asked, and how


@pytest.mark.sample(1)
def test_texts_of_several_requests_get_the_answers_that_a_foreign_client_gets(recipe, url, foreign):
    many = [*TEXTS, *TEXTS, "the end"]  # more than fit into a request
    response = query(recipe, url, "--model", "labels_text", *(word for text in many for word in ("--text", text)))
    assert response["protocol"] == url.partition(":")[0]
    assert len(response["rows"]) == len(many)
    for text, row in zip(many, response["rows"], strict=True):
        expected = foreign.infer("labels_text", texts(text))
        assert row["labels"] == expected["labels"]
        assert np.allclose(row["scores"], expected["scores"], atol=1e-5)


@pytest.mark.sample(1)
def test_pairs_files_and_stdin_ask_the_same(recipe, url, tmp_path):
    pair = query(recipe, url, "--model", "labels_text", "--text", TEXTS[0], "--pair", TEXTS[3])["rows"]
    alone = query(recipe, url, "--model", "labels_text", "--text", TEXTS[0])["rows"]
    assert not np.allclose(pair[0]["scores"], alone[0]["scores"], atol=1e-6)
    lines = [{"text": TEXTS[0], "pair": TEXTS[3], "label": 1}, {"text": TEXTS[0]}]
    (tmp_path / "samples.jsonl").write_text("\n".join(map(json.dumps, lines)))
    mixed = query(recipe, url, "--model", "labels_text", "--file", str(tmp_path / "samples.jsonl"))["rows"]
    assert [row["labels"] for row in mixed] == [row["labels"] for row in (*pair, *alone)]
    assert np.allclose([row["scores"] for row in mixed], [row["scores"] for row in (*pair, *alone)], atol=1e-5)
    (tmp_path / "lines.txt").write_text(f"{TEXTS[0]}\n\n{TEXTS[3]}\n")
    listed = query(recipe, url, "--model", "labels_text", "--file", str(tmp_path / "lines.txt"))["rows"]
    assert len(listed) == 2
    assert np.allclose(listed[0]["scores"], alone[0]["scores"], atol=1e-5)
    piped = subprocess.run(
        [sys.executable, "-m", "engine", "query", url, "--model", "labels_text", "--file", "-", "--json"],
        cwd=recipe.folder, env=recipe.environment, input=json.dumps(lines[0]), capture_output=True, text=True,
        check=True,
    )  # fmt: skip
    assert np.allclose(json.loads(piped.stdout)["rows"][0]["scores"], pair[0]["scores"], atol=1e-5)


@pytest.mark.sample(1)
def test_a_question_and_its_context_get_a_span_of_the_context(recipe, url, foreign, tmp_path):
    question, context = "where is the river?", "the river ships in the city. it is warm 🎬"
    row = query(recipe, url, "--model", "questions_text", "--text", question, "--pair", context)["rows"][0]
    expected = foreign.infer("questions_text", texts(question, context))
    assert row["answer"] == expected["answer"]
    assert context[row["start"][0] : row["end"][0]] == row["answer"][0]
    (tmp_path / "one.jsonl").write_text(json.dumps({"question": question, "context": context}))
    shown = recipe("query", url, "--model", "questions_text", "--file", str(tmp_path / "one.jsonl"), expect=0).stdout
    assert row["answer"][0] in shown
    assert f"characters {row['start'][0]} to {row['end'][0]}" in shown


@pytest.mark.sample(1)
def test_images_are_sent_as_they_are_by_option_by_file_and_by_samples(recipe, url, foreign, photo, tmp_path):
    expected = foreign.infer_file("photo_image", "IMAGE", photo.read_bytes())
    (tmp_path / "images.jsonl").write_text(json.dumps({"image": photo.name}))
    ways = (["--image", str(photo)], ["--file", str(photo)], ["--file", str(tmp_path / "images.jsonl")])
    for way in ways[: 3 if url.startswith("http") else 1]:
        row = query(recipe, url, "--model", "photo_image", *way)["rows"][0]
        assert row["labels"] == expected["labels"]
        assert np.allclose(row["scores"], expected["scores"], atol=1e-5)


@pytest.mark.sample(1)
def test_plain_tensors_are_given_as_json_and_as_npz(recipe, url, packages, tmp_path):
    x = np.random.default_rng(0).standard_normal((3, 64)).astype(np.float32)
    expected = ort.run(ort.session(packages / "layers" / "layers" / "1", threads=1), {"x": x})["y"]
    np.savez(tmp_path / "x.npz", x=x.astype(np.float64))
    as_file = query(recipe, url, "--model", "layers", "--file", str(tmp_path / "x.npz"))["rows"]
    as_json = query(recipe, url, "--model", "layers", "--input", f"x={json.dumps(x.tolist())}")["rows"]
    for rows in (as_file, as_json):
        assert np.allclose(rows[0]["y"], expected, atol=1e-5)
    one = query(recipe, url, "--model", "layers", "--input", f"x={json.dumps(x[0].tolist())}")["rows"]
    assert np.allclose(one[0]["y"], expected[:1], atol=1e-5)


@pytest.mark.sample(1)
def test_generated_text_comes_whole_and_in_pieces_that_make_it(recipe, url):
    ask = ["query", url, "--model", "story_text", "--text", "The cat sat"]
    whole = json.loads(recipe(*ask, "--json", expect=0).stdout)["rows"][0]
    lines = recipe(*ask, "--stream", "--json", expect=0).stdout.splitlines()
    pieces = [json.loads(line)["piece"] for line in lines]
    assert len(pieces) > 1
    assert "".join(piece["text"][0] for piece in pieces) == whole["text"][0]
    assert pieces[-1]["finish_reason"] == whole["finish_reason"]
    shown = recipe(*ask, "--stream", expect=0).stdout
    assert shown.startswith(whole["text"][0])
    short = json.loads(recipe(*ask, "--max-new-tokens", "2", "--json", expect=0).stdout)["rows"][0]
    assert len(short["token_ids"]) == 2
    assert whole["text"][0].startswith(short["text"][0])
    stop = whole["text"][0][2:4]
    stopped = json.loads(recipe(*ask, "--stop", stop, "--json", expect=0).stdout)["rows"][0]
    assert stopped["finish_reason"] == ["stop"]
    assert len(stopped["text"][0]) < len(whole["text"][0])


def test_answers_are_shown_as_people_read_them(recipe, server, foreign):
    shown = recipe("query", server.http, "--model", "labels_text", "--text", TEXTS[0], expect=0).stdout.splitlines()
    expected = foreign.infer("labels_text", texts(TEXTS[0]))
    assert [line.split()[0] for line in shown] == expected["labels"]
    assert float(shown[0].split()[1]) == pytest.approx(expected["scores"][0], abs=1e-4)
    raw = recipe("query", server.http, "--model", "layers", "--input", f"x={[1.0] * 64}", expect=0).stdout
    assert raw.startswith("y: ")


# Repeating, and the server's own counters


@pytest.mark.sample(1)
def test_repeated_requests_are_timed_and_the_servers_counters_add_up(recipe, url):
    response = query(recipe, url, "--model", "labels_text", "--text", TEXTS[0], "--repeat", "40", "--statistics")
    times, counted = response["latency"], response["statistics"]
    assert times["requests"] == 40
    assert 0 < times["p50_ms"] <= times["p90_ms"] <= times["p95_ms"] <= times["p99_ms"] <= times["max_ms"]
    assert response["first_ms"] > 0
    entry, *parts = counted["models"].values()
    assert next(iter(counted["models"])) == "labels_text"
    assert len(parts) == 3
    assert {model["requests"] for model in counted["models"].values()} == {40}
    for model in parts:
        assert sum(model[f"{part}_ms"] for part in figures.PARTS) <= model["total_ms"] + 0.001
    for part in ("compute_input_ms", "compute_infer_ms"):  # Triton adds up an ensemble's from its models'
        assert entry[part] == pytest.approx(sum(model[part] for model in parts), rel=0.02)
    assert sum(model["queue_ms"] + model["compute_infer_ms"] for model in parts) <= entry["total_ms"]
    assert counted["client_ms"] == pytest.approx(times["mean_ms"], rel=0.01)
    assert counted["client_ms"] == pytest.approx(entry["total_ms"] + counted["network_and_client_ms"], abs=0.001)
    # A busy server stops its clock after the answer has left, so the difference can be slightly below zero.
    assert abs(counted["network_and_client_ms"]) < counted["client_ms"]
    words = ("--model", "labels_text", "--text", TEXTS[0], "--repeat", "3", "--statistics")
    shown = recipe("query", url, *words, expect=0).stdout
    assert "p95" in shown
    assert "network and client" in shown


# Other programs


def test_the_curl_line_of_every_entry_works_in_a_shell(server, photo, foreign):
    with Client(f"http://{server.http}") as client:
        entries = {entry.name: entry for entry in client.entries()}
    assert set(entries) == {"labels_text", "questions_text", "photo_image", "story_text", "story_stream", "layers"}
    for name, entry in entries.items():
        lines = [curl.curl_line(server.http, entry, image=str(photo))]
        if name == "labels_text":
            lines.append(curl.curl_line(server.http, entry, texts=[TEXTS[1]]))
        for line in lines:
            assert "\n" not in line
            done = subprocess.run(["sh", "-c", line], capture_output=True, text=True, timeout=300, check=False)
            assert done.returncode == 0, (line, done.stderr)
            answers = [json.loads(each.removeprefix("data: ")) for each in done.stdout.splitlines() if each]
            assert answers, line
            assert not any("error" in answer for answer in answers), (line, done.stdout)
    lines = {name: curl.curl_line(server.http, entry, image=str(photo)) for name, entry in entries.items()}
    response = json.loads(subprocess.run(["sh", "-c", lines["photo_image"]], capture_output=True, check=True).stdout)
    expected = foreign.infer_file("photo_image", "IMAGE", photo.read_bytes())
    assert {each["name"]: each["data"] for each in response["outputs"]}["labels"] == expected["labels"]


def test_a_client_by_the_specification_finds_and_asks_every_entry(foreign):
    assert foreign.get("/v2/health/live") == {}
    assert foreign.get("/v2/health/ready") == {}
    metadata = foreign.get("/v2/models/labels_text")
    assert [(each["name"], each["datatype"]) for each in metadata["inputs"]] == [("TEXT", "BYTES")]
    answer = foreign.infer("labels_text", {"TEXT": ("BYTES", [2, 1], list(TEXTS[:2]))})
    assert len(answer["scores"]) == 4


def test_tritonclients_of_every_kind_get_the_same(server, foreign):
    from tritonclient import grpc, http
    from tritonclient.grpc import aio as grpc_aio
    from tritonclient.http import aio as http_aio

    array = np.array([[text.encode()] for text in TEXTS[:2]], dtype=object)

    def inputs(kind):
        value = kind.InferInput("TEXT", list(array.shape), "BYTES")
        value.set_data_from_numpy(array)
        return [value]

    async def awaited(kind, address):
        client = kind.InferenceServerClient(address)
        try:
            return (await client.infer("labels_text", inputs(kind))).as_numpy("scores")
        finally:
            await client.close()

    scores = [
        http.InferenceServerClient(server.http).infer("labels_text", inputs(http)).as_numpy("scores"),
        grpc.InferenceServerClient(server.grpc).infer("labels_text", inputs(grpc)).as_numpy("scores"),
        asyncio.run(awaited(http_aio, server.http)),
        asyncio.run(awaited(grpc_aio, server.grpc)),
    ]
    expected = foreign.infer("labels_text", {"TEXT": ("BYTES", [2, 1], list(TEXTS[:2]))})["scores"]
    assert all(np.allclose(each.ravel(), expected, atol=1e-5) for each in scores)


# What goes wrong


def test_a_server_of_several_entries_wants_a_choice_and_knows_its_models(recipe, server):
    several = recipe("query", server.http, "--text", "a", expect=2).stderr
    assert "which one?" in several
    assert "labels_text (text-classification)" in several
    assert "--model NAME" in several
    unknown = recipe("query", server.http, "--model", "label_text", "--text", "a", expect=2).stderr
    assert "did you mean labels_text?" in unknown


def test_the_wrong_port_is_recognized(recipe, server):
    http_error = recipe("query", f"http://{server.grpc}", "--text", "a", expect=1).stderr
    assert f"use grpc://{server.grpc}" in http_error
    grpc_error = recipe("loadtest", f"grpc://{server.http}", "--text", "a", expect=1).stderr
    assert f"use http://{server.http}" in grpc_error
    assert "metrics" in recipe("query", server.metrics, "--text", "a", expect=1).stderr


def test_what_does_not_suit_the_model_is_told_before_it_is_asked(server, tmp_path, monkeypatch, capsys):
    """In the process of the tests: a dozen mistakes."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "broken.jsonl").write_text('{"text": "fine"}\n{"text": \n')
    (tmp_path / "no.npz").write_bytes(b"no archive")
    for words, says in (
        (["--model", "labels_text", "--file", "broken.jsonl"], "broken.jsonl:2"),
        (["--model", "labels_text", "--file", "missing.txt"], "No such file"),
        (["--model", "labels_text", "--file", "no.npz"], "cannot be read as an .npz"),
        (["--model", "labels_text"], "there is no input"),
        (["--model", "labels_text", "--text", "a", "--pair", "b", "--pair", "c"], "do not go together"),
        (["--model", "questions_text", "--text", "a"], "two texts"),
        (["--model", "layers", "--text", "a"], "takes no texts"),
        (["--model", "layers", "--input", "z=[1]"], "has no input 'z'"),
        (["--model", "layers", "--input", "x=[1, 2]"], "any x 64"),
        (["--model", "layers", "--input", "x=[[1], [1, 2]]"], "different lengths"),
        (["--model", "layers", "--input", "x=[oops]"], "no JSON"),
        (["--model", "labels_text", "--text", "a", "--stop", "b"], "does not generate"),
    ):
        with pytest.raises(SystemExit) as ended:
            cli.main(["query", server.http, *words])
        printed = capsys.readouterr()
        assert ended.value.code == 2, words
        assert says in printed.err, (words, printed.err)
        assert printed.out == ""


@pytest.mark.sample(1)
def test_an_error_of_the_server_is_told_in_its_own_words(recipe, url, tmp_path):
    (tmp_path / "no.png").write_bytes(b"no image at all")
    done = recipe("query", url, "--model", "photo_image", "--image", "no.png", expect=1)
    assert "the server refused the request to photo_image" in done.stderr
    assert "IMAGE" in done.stderr


@pytest.mark.whole("test_the_wrong_port_is_recognized asks where no server is")
def test_a_server_killed_while_it_is_asked_is_told_as_such(packages, environment, recipe):
    """And a load test of it fails, with what the requests met. Each asks a model that the others do not."""
    with triton_server.serving(environment, packages / "labels") as server:
        only = query(recipe, server.http, "--text", TEXTS[0])
        assert only["model"] == "labels_text"  # the one entry that it has needs no name
        tokens = [
            word for name in ("input_ids", "attention_mask", "token_type_ids") for word in ("--input", f"{name}=[1]")
        ]
        start = functools.partial(recipe.start, stderr=subprocess.PIPE)
        over_http = start("query", server.http, "--text", TEXTS[0], "--repeat", "100000")
        over_grpc = start("query", server.grpc, "--model", "labels", *tokens, "--repeat", "100000")
        load = start("loadtest", server.grpc, "--model", "labels_tokenizer", "--text", TEXTS[0],
                     "--with", "own", "--warm-up", "0.1", "--duration", "4")  # fmt: skip
        with Client(server.http) as client:
            end = time.monotonic() + 300
            while min(their_own(client.statistics())) <= 50:
                assert time.monotonic() < end
                assert all(process.poll() is None for process in (over_http, over_grpc, load))
                time.sleep(0.05)
        os.kill(server.pid, signal.SIGKILL)
        for process in (over_http, over_grpc):
            output, error = process.communicate(timeout=300)
            assert process.returncode == 1
            assert "went away" in error
            assert "of 100000 requests were answered before" in error
            assert "recipe serve" in error
            assert output  # the first answer stands
        output, error = load.communicate(timeout=300)
        assert load.returncode == 1
        assert "requests failed" in error
        assert "labels_tokenizer at" in output
    gone = recipe("query", server.http, "--text", "a", expect=1).stderr
    assert "nothing answers at" in gone
    assert "recipe serve" in gone


def their_own(statistics):
    """How many requests came to the ensemble, and to two of its models by themselves."""
    entry = statistics["labels_text"].requests
    return entry, statistics["labels"].requests - entry, statistics["labels_tokenizer"].requests - entry


def test_a_proxy_that_hides_the_list_of_models_needs_a_name(recipe, server, tmp_path):
    with front.nginx(server, tmp_path, models="story_(text|stream)", body="4m") as proxy:
        addresses = (f"http://127.0.0.1:{proxy.port}", f"grpc://{proxy.grpc}")
        for address in addresses:
            said = query(recipe, address, "--model", "story_text", "--text", "A day", "--max-new-tokens", "3")
            assert said["model"] == "story_text"
            nameless = recipe("query", address, "--text", "A day", expect=1).stderr
            assert f"{address} does not list its models" in nameless
            assert "name the model with --model NAME" in nameless
        status = [
            front.ask(proxy.port, "GET", f"/v2/models/{each}/ready") for each in ("story_text", "story", "labels")
        ]
        assert status == [200, 404, 404]
