"""The border to Triton: the model.py of every python model that answers each request by itself."""

from __future__ import annotations

import importlib.util
import json
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any


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
        most = getattr(self.work, "max_text_bytes", None)
        if most is not None:
            _module(folder / "unread.py").leave_unread(most)

    def execute(self, requests: list[Any]) -> list[Any]:
        """Answer each request: what is wrong with one is no fault of the others.

        A ValueError of the work is a mistake of the client (INVALID_ARG: HTTP 400), any other exception is not (500).
        """
        if not hasattr(self.work, "together"):
            return [_answer(request, partial(self._made, request)) for request in requests]
        waited_for = [request for request in requests if not request.is_cancelled()]
        read = [(partial(_given, request), list(request.requested_output_names())) for request in waited_for]
        answers = dict(zip(map(id, waited_for), self.work.together(read), strict=True))
        return [_answer(request, answers.get(id(request), dict)) for request in requests]

    def _made(self, request: Any) -> dict[str, Any]:
        given = _given(request)
        return {**{name: given[name] for name in self.again}, **self.work(given)}


def _given(request: Any) -> dict[str, Any]:
    return {tensor.name(): tensor.as_numpy() for tensor in request.inputs()}


def _answer(request: Any, made: Callable[[], dict[str, Any]]) -> Any:
    """Return the response with the tensors that `made` returns, or with the error that it raises."""
    import triton_python_backend_utils as triton  # type: ignore[import-not-found]  # only inside the server

    codes = triton.TritonError
    if request.is_cancelled():  # nobody waits for the answer
        return _failed("the request was cancelled", codes.CANCELLED)
    try:
        tensors = [triton.Tensor(name, array) for name, array in made().items()]
    except ValueError as error:
        return _failed(str(error), codes.INVALID_ARG)
    except Exception as error:  # noqa: BLE001 - the other requests are answered, whatever it is
        return _failed(f"{type(error).__name__}: {error}", codes.INTERNAL)
    return triton.InferenceResponse(tensors)


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
