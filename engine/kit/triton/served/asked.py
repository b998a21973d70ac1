"""One request for generated text, from its tensors to its response. Packages carry asked.py beside model.py."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from . import sampling
from .sampling import Sampling

if TYPE_CHECKING:
    from .pieces import Pieces

_STOP = "stop"
_UNSUPPORTED = {
    "bad_words", "beam_width", "best_of", "early_stopping", "frequency_penalty", "length_penalty", "logit_bias",
    "logprobs", "max_length", "max_new_tokens", "max_tokens", "min_length", "min_new_tokens", "min_p", "min_tokens",
    "n", "no_repeat_ngram_size", "num_beams", "presence_penalty", "stop", "stop_words", "typical_p",
}  # fmt: skip
"""Parameters that clients of other servers send: the names of transformers, of OpenAI's API and of Triton's backends.

A parameter with another name may come from the server itself, for example a forwarded header.
"""


class Row:
    """One text of a request and the answer that was generated for it so far."""

    def __init__(self, prompt: list[int], most: int, pieces: Pieces, sampling: Sampling, number: int) -> None:
        """Begin an empty answer to a prompt; `prompt` holds its tokens, and `most` limits the number of new tokens.

        `sampling` says how tokens are chosen; `number` is the number of the row in its request.
        """
        self.prompt = prompt
        self.most = most
        self.sampler = sampling.sampler(number)
        self.penalty = sampling.repetition_penalty
        self.reason: str | None = None
        """The reason why the answer ended, "stop" or "length"; None while the answer grows."""
        self.text = ""
        """The end of the answer's text that was not sent to the client yet; `tokens` are the tokens of this end."""
        self.tokens: list[int] = []
        self._pieces = pieces
        self._seen = 0

    def grow(self, made: Sequence[int], reason: str | None) -> None:
        """Store all tokens of the answer so far, and the reason why the answer ended; None while the answer grows."""
        if self.reason is not None:
            return
        self.text += self._pieces.next(made, finished=reason is not None)
        self.tokens += made[self._seen :]
        self._seen = len(made)
        self.reason = _STOP if self._pieces.stopped else reason


class Asked:
    """A request with its rows, which is answered at once or piece by piece."""

    def __init__(self, request: Any, *, streams: bool) -> None:
        """Store a request of Triton's python backend; with `streams` its answer is sent piece by piece."""
        self.rows: list[Row] = []
        self.sampling = Sampling()
        """How the tokens of the request are chosen, as `texts` read it."""
        self.error: Any = None
        """The error of the request, a `TritonError` of Triton's python backend, or None."""
        self._request = request
        self._sender = request.get_response_sender() if streams else None
        self._ended = False

    def texts(self, most: int) -> Iterator[tuple[str, int, list[str]]]:
        """Yield for each row the text, the limit of new tokens (`most` by default) and the stop strings.

        Raises ValueError for inputs of a wrong shape or value, and for parameters that would not be followed.
        """
        parameters = json.loads(self._request.parameters() or "{}")
        _refuse_parameters(parameters)
        self.sampling = sampling.read({name.lower(): value for name, value in parameters.items()})
        texts = self._input("TEXT")
        limits, stops = self._input("MAX_NEW_TOKENS"), self._input("STOP")
        if texts is None or texts.ndim != 2 or not len(texts) or texts.shape[1] != 1:  # noqa: PLR2004 - rows of one
            raise ValueError("TEXT: each row holds one text")
        for name, array in (("MAX_NEW_TOKENS", limits), ("STOP", stops)):
            if array is not None and len(array) != len(texts):
                raise ValueError(f"{name}: one for each row of TEXT, there are {len(texts)}")
        for number, (text,) in enumerate(texts):
            new = most if limits is None else int(limits[number].reshape(-1)[0])
            if not 1 <= new <= most:
                raise ValueError(f"MAX_NEW_TOKENS: {new} is not between 1 and {most}, the most of this model")
            own = [] if stops is None else [_text(stop, "STOP") for stop in stops[number].reshape(-1)]
            yield _text(text, "TEXT"), new, own

    def refuse(self, why: str) -> None:
        """Make the response to the request an error: a mistake of the client (INVALID_ARG), for the reason `why`."""
        import triton_python_backend_utils as triton  # type: ignore[import-not-found]  # only inside the server

        self.error = triton.TritonError(why, triton.TritonError.INVALID_ARG)

    def fail(self, why: str) -> None:
        """Make the response to the request an error: a fault of the server (INTERNAL), for the reason `why`."""
        import triton_python_backend_utils as triton

        self.error = triton.TritonError(why, triton.TritonError.INTERNAL)

    def look(self) -> None:
        """End the rows of a request whose client cancelled the request."""
        import triton_python_backend_utils as triton

        if self.error is None and not self._finished and self._request.is_cancelled():
            self.error = triton.TritonError("the request was cancelled", triton.TritonError.CANCELLED)
            for row in self.rows:
                row.reason = row.reason or _STOP

    def send(self) -> None:
        """When streaming, send the new text as a piece; the last piece or an error ends the stream."""
        import triton_python_backend_utils as triton

        new = self.error is not None or self._finished or any(row.text for row in self.rows)
        if self._sender is None or self._ended or not new:
            return
        self._ended = self.error is not None or self._finished
        flags = triton.TRITONSERVER_RESPONSE_COMPLETE_FINAL if self._ended else 0
        self._sender.send(self.response(), flags=flags)
        for row in self.rows:
            row.text, row.tokens = "", []

    def response(self) -> Any:
        """Return what is not sent yet, for each row: `text`, `token_ids` (padded with -1) and `finish_reason`."""
        import numpy as np
        import triton_python_backend_utils as triton

        if self.error is not None:
            return triton.InferenceResponse(error=self.error)
        ids = np.full((len(self.rows), max(len(row.tokens) for row in self.rows)), -1, dtype=np.int64)
        for number, row in enumerate(self.rows):
            ids[number, : len(row.tokens)] = row.tokens
        texts = [[row.text.encode()] for row in self.rows]
        reasons = [[(row.reason or "").encode()] for row in self.rows]
        made = {"text": np.array(texts, object), "token_ids": ids, "finish_reason": np.array(reasons, object)}
        return triton.InferenceResponse([triton.Tensor(name, array) for name, array in made.items()])

    @property
    def _finished(self) -> bool:
        return all(row.reason is not None for row in self.rows)

    def _input(self, name: str) -> Any:
        import triton_python_backend_utils as triton

        tensor = triton.get_input_tensor_by_name(self._request, name)
        return None if tensor is None else tensor.as_numpy()


def _refuse_parameters(parameters: Mapping[str, Any]) -> None:
    """Raise ValueError for parameters by which the client means another generation than the package's."""
    unsupported = sorted(name for name in parameters if name.lower() in _UNSUPPORTED)
    if unsupported:
        raise ValueError(
            f"{', '.join(unsupported)}: this model takes no such parameters, and generates as its package says; "
            f"the inputs are TEXT, MAX_NEW_TOKENS and STOP, the parameters {', '.join(sampling.NAMES)}"
        )


def _text(value: bytes, name: str) -> str:
    try:
        return value.decode("utf-8")
    except ValueError as error:  # invalid UTF-8, or a text that is too large
        raise ValueError(f"{name}: {error}") from error
