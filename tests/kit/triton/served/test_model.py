"""The border to Triton, with a stand-in for the module that Triton's Python backend brings."""

import sys
from types import SimpleNamespace

import numpy as np
import pytest

from engine.kit.triton.served import model


class TritonError:
    CANCELLED, INVALID_ARG, INTERNAL = "cancelled", "invalid", "internal"

    def __init__(self, text, code):
        self.text, self.code = text, code


class Response:
    def __init__(self, tensors=(), error=None):
        self.tensors, self.error = list(tensors), error


@pytest.fixture(autouse=True)
def triton(monkeypatch):
    backend = SimpleNamespace(
        TritonError=TritonError,
        InferenceResponse=Response,
        Tensor=lambda name, array: (name, array),
        TRITONSERVER_RESPONSE_COMPLETE_FINAL=1,
    )
    monkeypatch.setitem(sys.modules, "triton_python_backend_utils", backend)


class Request:
    """A request with one tensor, which notes what is sent for it. An `old` Triton takes only returned responses."""

    def __init__(self, number, *, old=False, cancelled=False):
        self.number, self.old, self.cancelled = number, old, cancelled
        self.sent, self.questions = [], 0

    def inputs(self):
        return [SimpleNamespace(name=lambda: "x", as_numpy=lambda: np.array([[self.number]]))]

    def requested_output_names(self):
        return ["y"]

    def is_cancelled(self):
        self.questions += 1
        return self.cancelled

    def get_response_sender(self):
        if self.old:
            raise RuntimeError("only for models that are decoupled")
        return SimpleNamespace(send=lambda response, flags: self.sent.append((response, flags)))


class Work:
    """Answers twice the number, the last request first, the first two as one; 13 and 14 are mistakes of the client."""

    def together(self, requests):
        self.waited = [cancelled() for _, _, cancelled in requests]
        for place, (read, _, _) in reversed(list(enumerate(requests))):
            yield place, lambda read=read: self.answer(read()), place > 1

    def answer(self, given):
        if given["x"].item() == 13:
            raise ValueError("thirteen")
        if given["x"].item() == 14:
            raise IndexError("fourteen")
        if given["x"].item() == 15:
            raise KeyError("fifteen")
        return {"y": given["x"] * 2}


def opened():
    served = model.TritonPythonModel()
    served.work, served.again, served.ended = Work(), [], 0.0
    return served


def execute(*requests):
    return opened().execute(list(requests))


def number(response):
    [(name, array)] = response.tensors
    assert name == "y"
    return array.item()


def test_an_answer_is_sent_at_once_while_others_wait_and_the_last_are_returned():
    requests = [Request(1), Request(2), Request(3)]
    returned = execute(*requests)
    assert [each if each is None else number(each) for each in returned] == [2, 4, None]
    assert [[(number(response), flags) for response, flags in each.sent] for each in requests] == [[], [], [(6, 1)]]
    assert [each.questions for each in requests] == [1, 1, 1], "Triton answers in another process"


def test_one_request_alone_is_answered_by_what_is_returned():
    request = Request(4)
    [response] = execute(request)
    assert number(response) == 8
    assert request.sent == []


def test_an_older_triton_gets_all_answers_returned():
    requests = [Request(each, old=True) for each in (1, 2, 3)]
    assert [number(response) for response in execute(*requests)] == [2, 4, 6]


def test_errors_and_cancelled_requests_are_answered_by_their_codes():
    requests = [Request(1), Request(13), Request(3, cancelled=True), Request(13)]
    [first, second, *others] = execute(*requests)
    assert number(first) == 2
    assert second.error.code == "invalid"
    assert others == [None, None]
    assert [response.error.code for each in requests[2:] for response, _ in each.sent] == ["cancelled", "invalid"]


@pytest.mark.parametrize(("value", "code"), [(13, "invalid"), (14, "invalid"), (15, "internal")])
def test_tensors_that_do_not_fit_are_a_mistake_of_the_client_and_other_errors_are_none(value, code):
    [response] = execute(Request(value))
    assert response.error.code == code


@pytest.mark.parametrize(("seconds", "waits"), [(0.0002, True), (0.005, False)])
def test_triton_waits_before_the_work_whether_a_request_that_waited_was_cancelled(monkeypatch, seconds, waits):
    """A request that comes long after the answers before it has not waited."""
    now = [100.0]
    monkeypatch.setattr(model.time, "monotonic", lambda: now[0])
    served = opened()
    served.execute([Request(1)])
    now[0] += seconds
    served.execute([Request(2, cancelled=True)])
    assert served.work.waited == [waits]


def test_triton_waits_about_each_of_several_requests():
    served = opened()
    served.execute([Request(1), Request(2, cancelled=True)])
    assert served.work.waited == [False, True]
