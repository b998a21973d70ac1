"""The border to Triton: the model.py of every python model that answers each request by itself."""

from __future__ import annotations

import importlib.util
import json
import time
from collections.abc import Callable
from functools import cache, partial
from pathlib import Path
from typing import Any, NamedTuple

_AT_ONCE = 0.001
"""A request that comes within so many seconds after the answers before it has waited for them."""


class TritonPythonModel:
    """Tensors of a request in, tensors of its answer out; what lies between is the `Work` of a file beside this one.

    settings.json names that file and holds what it needs to know, so nothing is read while requests are answered; and
    what is given again as it came.
    """

    def initialize(self, args: dict[str, str]) -> None:
        """Load the work; Triton calls this once."""
        folder = Path(args["model_repository"]) / args["model_version"]
        settings = json.loads((folder / "settings.json").read_text("utf-8"))
        self.work = _module(folder / settings["work"]).Work(folder, settings)
        self.again = settings.get("again", [])
        self.ended = 0.0
        most = getattr(self.work, "max_text_bytes", None)
        if most is not None:
            _module(folder / "unread.py").leave_unread(most)

    def execute(self, requests: list[Any]) -> list[Any]:
        """Answer each request: what is wrong with one is no fault of the others.

        A ValueError or IndexError of the work is a mistake of the client (INVALID_ARG: HTTP 400), whose tensors do not
        fit. Any other exception is none (500).
        """
        waited = len(requests) > 1 or time.monotonic() < self.ended + _AT_ONCE
        tracked = [_Tracked(request, cache(request.is_cancelled) if waited else _not_cancelled) for request in requests]
        if hasattr(self.work, "together"):
            responses = self._together(tracked)
        else:
            responses = [each.answer(partial(self._made, each.request)) for each in tracked]
        self.ended = time.monotonic()
        return responses

    def _together(self, tracked: list[_Tracked]) -> list[Any]:
        """Answer requests that Triton joined: an answer that is there before the model runs again is sent at once.

        Otherwise a client with a short text would wait for the longest text of all others. The last answers are
        returned all at once, because Triton's process takes each answer that is sent by itself.
        """
        read = [
            (partial(_given, each.request), list(each.request.requested_output_names()), each.is_cancelled)
            for each in tracked
        ]
        responses: dict[int, Any] = {}
        for place, made, others_wait in self.work.together(read):
            response = tracked[place].answer(made)
            responses[place] = None if others_wait and _sent(tracked[place].request, response) else response
        return [responses[place] for place in range(len(tracked))]

    def _made(self, request: Any) -> dict[str, Any]:
        given = _given(request)
        return {**{name: given[name] for name in self.again}, **self.work(given)}


class _Tracked(NamedTuple):
    """A request, and what tells whether its client had cancelled it when that was asked first."""

    request: Any
    is_cancelled: Callable[[], bool]

    def answer(self, made: Callable[[], dict[str, Any]]) -> Any:
        """Return the response with the tensors that `made` returns, or with the error that it raises."""
        import triton_python_backend_utils as triton  # type: ignore[import-not-found]  # only inside the server

        codes = triton.TritonError
        if self.is_cancelled():  # nobody waits for the answer
            return _failed("the request was cancelled", codes.CANCELLED)
        try:
            tensors = [triton.Tensor(name, array) for name, array in made().items()]
        except (ValueError, IndexError) as error:
            return _failed(str(error), codes.INVALID_ARG)
        except Exception as error:  # noqa: BLE001 - the other requests are answered, whatever it is
            return _failed(f"{type(error).__name__}: {error}", codes.INTERNAL)
        return triton.InferenceResponse(tensors)


def _not_cancelled() -> bool:
    """Stand for the question whether a request was cancelled, where it has not waited.

    Triton answers the question in another process, which takes a twentieth of the time of a short text.
    """
    return False


def _given(request: Any) -> dict[str, Any]:
    return {tensor.name(): tensor.as_numpy() for tensor in request.inputs()}


def _sent(request: Any, response: Any) -> bool:
    """Send a response at once; return whether that is possible. A Triton before 24.06 takes returned responses only."""
    import triton_python_backend_utils as triton

    try:
        sender = request.get_response_sender()
    except Exception:  # noqa: BLE001 - an error of Triton's own class, by which older servers refuse
        return False
    sender.send(response, flags=triton.TRITONSERVER_RESPONSE_COMPLETE_FINAL)
    return True


def _failed(why: str, code: Any) -> Any:
    """Return a response with an error and its code, one of `TritonError` of Triton's python backend."""
    import triton_python_backend_utils as triton

    return triton.InferenceResponse(error=triton.TritonError(why, code))


def _module(path: Path) -> Any:
    """Return the module in a file; by its path, so that no installed package of that name can take its place."""
    spec = importlib.util.spec_from_file_location(path.stem, path)
    if spec is None or spec.loader is None:
        raise ImportError(f"{path} is no Python module")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module
