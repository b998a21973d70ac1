"""Answers in pieces over gRPC, with tritonclient's own way of calling back."""

from types import SimpleNamespace

import numpy as np
import pytest
from tritonclient import grpc

from engine.client.address import Address
from engine.client.client import GrpcLine
from engine.client.model_metadata import ModelMetadata


def piece(value, *, final=False):
    response = SimpleNamespace(
        parameters={"triton_final_response": SimpleNamespace(bool_param=final)},
        outputs=[] if value is None else [SimpleNamespace(name="y")],
    )
    return SimpleNamespace(get_response=lambda: response, as_numpy=lambda _: np.array([value]))


class Streaming:
    """tritonclient's client, which sends some responses to the callback by the names `result` and `error`."""

    responses = ()

    def __init__(self, *_, **__):
        self.cancelled = None

    def start_stream(self, callback):
        self.callback = callback

    def async_stream_infer(self, *_, **__):
        for result, error in self.responses:
            self.callback(result=result, error=error)

    def stop_stream(self, *, cancel_requests):
        self.cancelled = cancel_requests


@pytest.fixture
def line(monkeypatch):
    monkeypatch.setattr(grpc, "InferenceServerClient", Streaming)
    return GrpcLine(Address("h", 1, "grpc"), timeout=0.05)


def pieces(line, *responses):
    line._client.responses = responses
    return [outputs["y"].item() for outputs in line.stream(ModelMetadata("m", (), ()), {})]


def test_pieces_come_until_the_final_response_which_may_be_empty(line):
    assert pieces(line, (piece(1), None), (piece(2), None), (piece(None, final=True), None)) == [1, 2]
    assert line._client.cancelled is True


def test_an_error_or_silence_ends_the_stream(line):
    with pytest.raises(KeyError):
        pieces(line, (piece(1), None), (None, KeyError("of the server")))
    with pytest.raises(TimeoutError):
        pieces(line, (piece(1), None))
    assert line._client.cancelled is True
