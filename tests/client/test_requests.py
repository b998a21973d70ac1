"""Requests made of rows, up to the model's largest batch, and the bytes of a request."""

import json

import numpy as np
import pytest

from engine.client import encoded, requests, rows
from engine.client.address import Address
from engine.client.model_metadata import ModelMetadata, TensorMetadata
from engine.client.requests import InferRequest
from engine.errors import UsageError

TEXT = TensorMetadata("TEXT", "BYTES", (-1, -1))


def model(name="m", *inputs, **more):
    return ModelMetadata(name, inputs or (TEXT,), (), **({"max_batch_size": 4} | more))


def test_rows_fill_requests_of_their_kind_up_to_what_the_model_takes():
    query = rows.collect(texts=list("abcdef"))
    assert [len(request.rows) for request in requests.build(model(), query)] == [4, 2]
    assert requests.build(model(), query)[0].arrays["TEXT"].tolist() == [[b"a"], [b"b"], [b"c"], [b"d"]]
    assert [len(request.rows) for request in requests.build(model(max_batch_size=0), query)] == [1] * 6
    vector = requests.build(model("m", TensorMetadata("TEXT", "BYTES", (1,)), max_batch_size=0), query)
    assert [request.arrays["TEXT"].tolist() for request in vector[:2]] == [[b"a"], [b"b"]]
    mixed = rows.QueryInput((rows.QueryRow(("a",)), rows.QueryRow(("b", "c")), rows.QueryRow(("d", "e"))))
    assert [request.arrays["TEXT"].shape for request in requests.build(model(), mixed)] == [(1, 1), (2, 2)]


def test_a_load_fills_every_request_by_repeating_rows():
    filled = requests.build(model(), rows.collect(texts=list("abc")), rows_each=2)
    assert [request.arrays["TEXT"].ravel().tolist() for request in filled] == [[b"a", b"b"], [b"c", b"a"]]
    with pytest.raises(UsageError, match="takes 4 rows a request, not 5"):
        requests.build(model(), rows.collect(texts=["a"]), rows_each=5)


def test_a_value_that_would_change_in_the_inputs_type_is_refused():
    for datatype, value, says in (
        ("INT64", "[[1.5]]", "INT64"), ("UINT8", "[[300]]", "UINT8"), ("FP16", "[[1e9]]", "FP16"),
        ("FP32", '[["a"]]', "numbers"), ("BYTES", "[[1]]", "texts"), ("INT32", "[[[1]]]", "given: 1 x 1 x 1"),
    ):  # fmt: skip
        with pytest.raises(UsageError, match=says):
            requests.build(model("m", TensorMetadata("x", datatype, (-1, 1))), rows.collect(inputs=[f"x={value}"]))


def test_whole_inputs_of_samples_are_a_request_each_and_rows_are_one(tmp_path):
    image, state, rate = (-1, 3, -1), (2, -1, 4), (1,)
    takes = [TensorMetadata(name, "FP32", shape) for name, shape in (("x", image), ("h", state), ("sr", rate))]
    arrays = {"x": np.ones((5, 1, 3, 8)), "h": np.ones((5, 2, 1, 4)), "sr": np.arange(5.0), "label": np.zeros(5, int)}
    np.savez(tmp_path / "samples.npz", **arrays)
    several = requests.build(model("m", *takes, max_batch_size=0), rows.collect(files=[str(tmp_path / "samples.npz")]))
    assert [request.arrays["sr"].tolist() for request in several] == [[0], [1], [2], [3], [4]]
    assert {name: array.shape for name, array in several[0].arrays.items()} == {
        "x": (1, 3, 8), "h": (2, 1, 4), "sr": (1,),
    }  # fmt: skip
    np.savez(tmp_path / "rows.npz", x=np.ones((5, 3)), label=np.zeros(5, int))
    query = rows.collect(files=[str(tmp_path / "rows.npz")])
    [request] = requests.build(model("m", TensorMetadata("x", "FP32", (-1, 3))), query)
    assert {name: array.shape for name, array in request.arrays.items()} == {"x": (5, 3)}


def test_a_request_as_bytes_holds_what_its_own_client_would_send():
    request = InferRequest({"TEXT": np.array([["ü".encode()]], dtype=object)})
    plain = encoded.request(Address("h", 1, "http"), model(), request.arrays)
    head, _, body = plain.partition(b"\r\n\r\n")
    length = int(encoded.head_field(head, b"inference-header-content-length"))
    assert head.startswith(b"POST /v2/models/m/infer HTTP/1.1\r\n")
    assert int(encoded.head_field(head, b"content-length")) == len(body)
    assert json.loads(body[:length])["inputs"][0]["shape"] == [1, 1]
    assert body[length:] == b"\x02\x00\x00\x00" + "ü".encode()
    from tritonclient.grpc import service_pb2

    message = service_pb2.ModelInferRequest.FromString(
        encoded.request(Address("h", 1, "grpc"), model(), request.arrays)
    )
    assert (message.model_name, list(message.raw_input_contents)) == ("m", [body[length:]])


def test_each_image_goes_with_all_texts(tmp_path):
    for name in "abc":
        (tmp_path / f"{name}.png").write_bytes(name.encode())
    takes = model("m", TensorMetadata("IMAGE", "BYTES", (-1, 1)), TEXT)
    images = [str(tmp_path / f"{name}.png") for name in "ab"]
    [request] = requests.build(takes, rows.collect(images=images, texts=["cat", "dog"]))
    assert request.arrays["IMAGE"].tolist() == [[b"a"], [b"b"]]
    assert request.arrays["TEXT"].tolist() == [[b"cat", b"dog"]] * 2
    lines = ['{"image": "a.png", "texts": ["cat", "dog"], "label": 0}', '{"image": "c.png", "texts": ["car"]}']
    (tmp_path / "samples.jsonl").write_text("\n".join(lines))
    first, second = requests.build(takes, rows.collect(files=[str(tmp_path / "samples.jsonl")]))
    assert (first.arrays["TEXT"].tolist(), second.arrays["TEXT"].tolist()) == ([[b"cat", b"dog"]], [[b"car"]])
    with pytest.raises(UsageError, match="also needs TEXT"):
        requests.build(takes, rows.collect(images=images))
    with pytest.raises(UsageError, match="takes no texts"):
        requests.build(model("m", takes.inputs[0]), rows.collect(images=images, texts=["cat"]))
    with pytest.raises(UsageError, match="--pair and --image do not go together"):
        rows.collect(images=images, texts=["cat"], pairs=["dog"])
