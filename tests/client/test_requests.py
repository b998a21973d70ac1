"""Rows become requests of their kind, up to what the model takes, and the bytes that go over the line."""

import json

import numpy as np
import pytest

from engine.client import encoded, requests, rows
from engine.client.address import Address
from engine.client.entry import Entry, Tensor
from engine.client.requests import Asked
from engine.errors import UsageError

TEXT = Tensor("TEXT", "BYTES", (-1, -1))


def model(name="m", *inputs, **more):
    return Entry(name, inputs or (TEXT,), (), **({"largest": 4} | more))


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
