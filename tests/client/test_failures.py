"""Exceptions of the client library as errors that a user can act on."""

import pytest
from tritonclient.utils import InferenceServerException

from engine.client import failures
from engine.client.address import Address
from engine.errors import UsageError

SERVER = Address("h", 1, "grpc")


@pytest.mark.parametrize(
    ("error", "kind", "says"),
    [
        (InferenceServerException("wrong shape", "StatusCode.INVALID_ARGUMENT"), failures.RequestRefusedError, "shape"),
        (InferenceServerException("no one", "StatusCode.UNAVAILABLE"), failures.ServerGoneError, "went away"),
        (InferenceServerException("late", "StatusCode.DEADLINE_EXCEEDED"), failures.ServerGoneError, "within 2 s"),
        (InferenceServerException("timed out", "499"), failures.ServerGoneError, "within 2 s"),
        (TimeoutError(), failures.ServerGoneError, "within 2 s"),
        (ConnectionResetError("reset"), failures.ServerGoneError, "ConnectionResetError: reset"),
        (UsageError("ours"), UsageError, "ours"),
        (KeyError("a bug"), KeyError, "a bug"),
    ],
)
def test_the_server_the_connection_and_bugs_are_told_apart(error, kind, says):
    with pytest.raises(kind) as caught, failures.translated(SERVER, "the request", timeout=2.0):
        raise error
    assert says in str(caught.value)


def test_an_error_message_is_found_in_a_body_of_the_protocol_only():
    assert failures.error_message(b'{"error": "no such model"}') == "no such model"
    assert failures.error_message(b"<html>") is None
    assert failures.error_message(b"[1]") is None
