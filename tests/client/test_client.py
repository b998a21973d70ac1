"""The client's parts by themselves: addresses, entries, rows, requests, counters, arrivals, curl lines."""

import contextlib
import json
import shlex
import socket
import threading

import kserve_by_hand
import numpy as np
import pytest

from engine.client import address, answers, arrivals, counters, curl, encoded, entry, load, requests, rows
from engine.client.address import Address
from engine.client.entry import Entry, Tensor
from engine.client.generator import Done, Load
from engine.client.repeating import latencies
from engine.client.requests import Asked
from engine.errors import StepError, UsageError

TEXT = Tensor("TEXT", "BYTES", (-1, -1))


def model(name="m", *inputs, **more):
    return Entry(name, inputs or (TEXT,), (), **({"largest": 4} | more))


# Addresses


@pytest.mark.parametrize(
    ("url", "host", "port", "protocol", "tls"),
    [
        ("localhost:9000", "localhost", 9000, None, False),
        ("http://localhost", "localhost", 8000, "http", False),
        ("grpc://10.0.0.1:8001/", "10.0.0.1", 8001, "grpc", False),
        ("HTTPS://h", "h", 443, "http", True),
        ("grpcs://[::1]:1", "::1", 1, "grpc", True),
    ],
)
def test_a_url_says_where_and_how(url, host, port, protocol, tls):
    assert address.parse(url) == Address(host, port, protocol, tls)


@pytest.mark.parametrize("url", ["", "ftp://h", "http://h/v2/models", "a b", "h:0", "h:99999", "http://user@h"])
def test_what_is_no_url_of_a_server_is_refused(url):
    with pytest.raises(UsageError, match=r"address|port"):
        address.parse(url)


@contextlib.contextmanager
def listening(says):
    """A server that says this to whoever connects, and nothing else."""
    with socket.create_server(("127.0.0.1", 0)) as door:

        def answer():
            with contextlib.suppress(OSError):
                line, _ = door.accept()
                line.sendall(says)
                line.shutdown(socket.SHUT_WR)
                while line.recv(4096):
                    pass
                line.close()

        thread = threading.Thread(target=answer)
        thread.start()
        yield f"127.0.0.1:{door.getsockname()[1]}"
        thread.join(10)


def test_http_is_told_from_grpc_by_what_the_server_says_first():
    with kserve_by_hand.server() as plain:
        assert address.resolved(plain).protocol == "http"
    with listening(b"\x00\x00\x00\x04\x00\x00\x00\x00\x00") as settings:
        assert address.resolved(settings).protocol == "grpc"
    with listening(b"\x00\x00\x00\x04\x00\x00\x00\x00\x00") as settings, pytest.raises(StepError, match="grpc://"):
        address.resolved(f"http://{settings}")
    with listening(b"SSH-2.0-OpenSSH\r\n") as other, pytest.raises(StepError, match="no server of models"):
        address.resolved(other)
    with listening(b"HTTP/1.1 200 OK\r\n\r\nhello") as other, pytest.raises(StepError, match="no server of models"):
        address.resolved(other)


def test_a_port_where_nothing_listens_is_told_with_the_command_that_starts_a_server():
    with socket.create_server(("127.0.0.1", 0)) as door:
        free = f"127.0.0.1:{door.getsockname()[1]}"
    with pytest.raises(StepError, match="nothing answers") as told:
        address.resolved(free)
    assert "recipe serve" in told.value.hint


# Entries


def config(name, **more):
    inputs = [{"name": "TEXT", "data_type": "TYPE_STRING", "dims": ["-1"]}]
    return {"name": name, "max_batch_size": 8, "input": inputs, "output": []} | more


def marked(name, task, **more):
    return Entry.of_config(config(name, parameters={"recipe_task": {"string_value": task}}, **more))


def ensemble(name, *parts):
    return Entry.of_config(config(name, ensemble_scheduling={"step": [{"model_name": part} for part in parts]}))


def test_entries_are_what_says_its_task_else_ensembles_and_what_takes_texts_else_all():
    plain = Entry.of_config(config("plain", input=[{"name": "x", "data_type": "TYPE_FP32", "dims": ["3"]}]))
    tokens, texts, other = (
        Entry.of_config(config("tokens")),
        ensemble("texts", "tokens", "plain"),
        Entry("texts2", (TEXT,), ()),
    )
    assert entry.callable_ones([plain, tokens, texts, marked("e", "fill-mask")]) == [marked("e", "fill-mask")]
    assert entry.callable_ones([plain, tokens, texts, other]) == [texts, other]
    assert entry.callable_ones([plain]) == [plain]
    assert (plain.inputs[0].datatype, plain.inputs[0].shape) == ("FP32", (-1, 3))


def test_of_a_model_that_answers_whole_and_in_pieces_the_wish_chooses():
    whole = marked("gpt_text", "text-generation")
    pieces = marked("gpt_stream", "text-generation", model_transaction_policy={"decoupled": True})
    assert entry.choose([whole, pieces], None, stream=False) is whole
    assert entry.choose([whole, pieces], None, stream=True) is pieces
    assert entry.sibling([whole, pieces], whole, stream=True) is pieces
    with pytest.raises(UsageError, match="which one"):
        entry.choose([whole, pieces, marked("bert_text", "fill-mask")], None, stream=False)
    with pytest.raises(UsageError, match="no model 'gtp_text'") as told:
        entry.choose([whole, pieces], "gtp_text", stream=False)
    assert told.value.hint == "did you mean gpt_text?"


# Rows and requests


def test_rows_fill_requests_of_their_kind_up_to_what_the_model_takes():
    said = rows.collect(texts=list("abcdef"))
    assert [len(asked.rows) for asked in requests.build(model(), said)] == [4, 2]
    assert requests.build(model(), said)[0].arrays["TEXT"].tolist() == [[b"a"], [b"b"], [b"c"], [b"d"]]
    assert [len(asked.rows) for asked in requests.build(model(largest=0), said)] == [1] * 6
    vector = requests.build(model("m", Tensor("TEXT", "BYTES", (1,)), largest=0), said)
    assert [asked.arrays["TEXT"].tolist() for asked in vector[:2]] == [[b"a"], [b"b"]]
    mixed = rows.Said((rows.Row(("a",)), rows.Row(("b", "c")), rows.Row(("d", "e"))))
    assert [asked.arrays["TEXT"].shape for asked in requests.build(model(), mixed)] == [(1, 1), (2, 2)]


def test_a_load_fills_every_request_by_repeating_rows():
    made = requests.build(model(), rows.collect(texts=list("abc")), each=2)
    assert [asked.arrays["TEXT"].ravel().tolist() for asked in made] == [[b"a", b"b"], [b"c", b"a"]]
    with pytest.raises(UsageError, match="takes 4 rows a request, not 5"):
        requests.build(model(), rows.collect(texts=["a"]), each=5)


@pytest.mark.parametrize(
    ("datatype", "value", "says"),
    [("INT64", "[[1.5]]", "INT64"), ("UINT8", "[[300]]", "UINT8"), ("FP16", "[[1e9]]", "FP16"),
     ("FP32", '[["a"]]', "numbers"),
     ("BYTES", "[[1]]", "texts"), ("INT32", "[[[1]]]", "given: 1 x 1 x 1")],
)  # fmt: skip
def test_a_value_that_would_change_in_the_inputs_type_is_refused(datatype, value, says):
    with pytest.raises(UsageError) as told:
        requests.build(model("m", Tensor("x", datatype, (-1, 1))), rows.collect(inputs=[f"x={value}"]))
    assert says in str(told.value)


def test_samples_are_read_as_recipes_have_them(tmp_path):
    (tmp_path / "dot.png").write_bytes(b"\x89PNG")
    lines = ['{"text": "a\u2028b", "label": 1}', "", '{"question": "q", "context": "c"}', '{"image": "dot.png"}']
    (tmp_path / "s.jsonl").write_text("\n".join(lines), "utf-8")
    read = rows.collect(files=[str(tmp_path / "s.jsonl")]).rows
    assert [row.texts for row in read] == [("a\u2028b",), ("q", "c"), ()]
    assert read[2].image == b"\x89PNG"
    for broken in ('{"text": 1}', "[1]", '{"txt": "a"}', '{"text": "a", "context": "b"}', '{"text": "\\ud800"}'):
        (tmp_path / "s.jsonl").write_text(broken)
        with pytest.raises(UsageError):
            rows.collect(files=[str(tmp_path / "s.jsonl")])


def test_a_request_as_bytes_holds_what_its_own_client_would_send():
    asked = Asked({"TEXT": np.array([["ü".encode()]], dtype=object)})
    plain = encoded.request(Address("h", 1, "http"), model(), asked.arrays)
    head, _, body = plain.partition(b"\r\n\r\n")
    length = int(encoded.head_field(head, b"inference-header-content-length"))
    assert head.startswith(b"POST /v2/models/m/infer HTTP/1.1\r\n")
    assert int(encoded.head_field(head, b"content-length")) == len(body)
    assert json.loads(body[:length])["inputs"][0]["shape"] == [1, 1]
    assert body[length:] == b"\x02\x00\x00\x00" + "ü".encode()
    from tritonclient.grpc import service_pb2

    message = service_pb2.ModelInferRequest.FromString(encoded.request(Address("h", 1, "grpc"), model(), asked.arrays))
    assert (message.model_name, list(message.raw_input_contents)) == ("m", [body[length:]])


# Figures


def test_counters_are_told_per_request_to_the_entry():
    def stats(count, queue):
        spent = {"success": {"count": count, "ns": 10 * queue}, "queue": {"count": count, "ns": queue}}
        return {
            "name": "part",
            "version": "1",
            "inference_count": count,
            "execution_count": count,
            "inference_stats": spent,
        }

    before, after = (
        [stats(number, number * 1e6), stats(3 * number, number * 1e6) | {"name": "e"}] for number in (2, 6)
    )
    found = counters.between(Entry("e", (), (), parts=("part",)), counters.read(before), counters.read(after))
    assert list(found) == ["e", "part"]
    assert found["e"]["requests"] == 12
    assert found["part"]["queue_ms"] == pytest.approx(4 / 12, abs=1e-4)
    restarted = counters.between(Entry("e", (), ()), counters.read(after), counters.read(before))
    assert restarted["e"]["requests"] == 6


def test_percentiles_are_in_milliseconds():
    found = latencies([number / 1000 for number in range(1, 102)])
    assert [found[f"{name}_ms"] for name in ("mean", "p50", "p90", "p95", "p99", "max")] == [51, 51, 91, 96, 100, 101]


def test_throughput_counts_what_ended_in_the_window_and_latency_what_began_in_it():
    done = Done()
    for begun, ended in ((0.5, 0.9), (0.9, 1.2), (1.5, 2.0), (2.9, 3.4)):
        done.begun.append(begun)
        done.ended.append(ended)
        done.tokens.append(5)
    wish = Load(Address("h", 1, "http"), (), 0.0, warm_up=1.0, duration=2.0, timeout=1.0, count_tokens=True)
    found = load._figures(load.Point(concurrency=1), wish, [done])
    assert found["throughput"] == 1.0
    assert found["tokens_per_second"] == 5.0
    assert found["latency"]["requests"] == 2
    assert found["latency"]["max_ms"] == 500


def test_arrivals_are_even_or_those_of_independent_callers():
    assert arrivals.planned(4, 1, arrivals="constant", seed=0) == [0, 0.25, 0.5, 0.75]
    drawn = arrivals.planned(50, 100, arrivals="poisson", seed=1)
    assert drawn == sorted(drawn) == arrivals.planned(50, 100, arrivals="poisson", seed=1)
    assert drawn != arrivals.planned(50, 100, arrivals="poisson", seed=2)
    gaps = np.diff(drawn)
    assert len(drawn) == pytest.approx(5000, rel=0.06)
    assert np.std(gaps) == pytest.approx(np.mean(gaps), rel=0.06)  # as the exponential distribution has it


def test_a_sweep_is_listed_doubled_or_stepped():
    assert arrivals.concurrencies("1,8, 32") == [1, 8, 32]
    assert arrivals.concurrencies("1:32:2x") == [1, 2, 4, 8, 16, 32]
    assert arrivals.concurrencies("4:12:4,20") == [4, 8, 12, 20]
    assert arrivals.rates("2.5,10:20:5") == [2.5, 10, 15, 20]
    for broken in ("", "1,", "0", "8:1:2x", "1:8:1x", "1:8", "1:9999:1", "1.5"):
        with pytest.raises(UsageError):
            arrivals.concurrencies(broken)


# Lines for a shell


def test_whatever_a_text_holds_the_shell_hands_it_over_as_it_is():
    text = """it's "so" $HOME `x` \\n ü"""
    words = shlex.split(curl.curl_line("h:1", model(), texts=[text]))
    assert words[:3] == ["curl", "-s", "http://h:1/v2/models/m/infer"]
    assert json.loads(words[-1])["inputs"] == [{"name": "TEXT", "shape": [1, 1], "datatype": "BYTES", "data": [text]}]


def test_a_word_to_be_filled_in_is_written_as_the_model_has_it():
    assert "the <mask> of France" in curl.curl_line("h:1", model(task="fill-mask", mask="<mask>"))


def test_answers_of_each_kind_are_shown_by_what_they_are_called():
    def shown(**row):
        texts = {name for name, value in row.items() if isinstance(np.ravel(value)[0], bytes)}
        arrays = {name: np.array(value, dtype=object if name in texts else None) for name, value in row.items()}
        return list(answers.shown(arrays))

    assert shown(labels=[b"GOOD", b"BAD"], scores=[0.75, 0.25], logits=[1.0, 0.0]) == ["GOOD  0.7500", "BAD   0.2500"]
    tokens = {"tokens": [b"[CLS]", b"Ada", b"is"], "labels": [b"PER", b"PER", b"O"], "scores": [0.5, 0.5, 0.5]}
    assert shown(**tokens, offsets=[[-1, -1], [0, 3], [4, 6]]) == ["Ada  PER  0.5000  characters 0 to 3"]
    assert shown(answer=[b"Ada"], score=[0.5], start=[3], end=[6]) == ["Ada  0.5000  characters 3 to 6"]
    assert shown(tokens=[[b"a", b"b"], [b"", b""]], scores=[[0.5, 0.25], [0, 0]]) == ["mask 1: a 0.5000  b 0.2500"]
    assert shown(text=[b"on"], token_ids=[4, 5, -1], finish_reason=[b"stop"]) == [
        "on",
        "(2 tokens, finish_reason: stop)",
    ]
    assert shown(y=[[1.5, 2.5]]) == ["y: 1 x 2 float64: 1.5, 2.5"]
    assert answers.as_json({"y": np.array([np.nan, 1.0])}) == {"y": [None, 1.0]}
