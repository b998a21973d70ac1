"""KV cache: runs the graphs of a generating model, call by call. Packages carry past.py beside model.py."""

from __future__ import annotations

from collections.abc import Generator, Mapping, Sequence
from typing import Any

Request = Any
Response = Any
Array = Any


class Past:
    """The state of rows that are being generated: their attention masks and the KV cache of all their tokens.

    The KV cache goes from one call to the next as Triton's own tensors, without a copy into numpy.
    """

    def __init__(self, said: Mapping[str, Any], mask: Array, version: int) -> None:
        """Start with an empty KV cache.

        `said` is the section `graphs` of generation.json, and `mask` is the attention mask of the prompts, int64 [rows,
        longest]. `version` is the version of the graphs, which is that of the model that calls them.
        """
        self.version = version
        self.model: str = said["decoder"]
        self.encoder: str | None = said["encoder"]
        self._outputs = {name: [*names] for name, names in said["outputs"].items()}
        self._mask = mask
        self._held = dict(_nothing(said["past"], len(mask)))
        self._seen = 0

    def encoded(self, tokens: Array) -> Generator[Request, Response, None]:
        """Run the encoder on the prompts, int64 [rows, longest], and keep its outputs for all later calls."""
        import triton_python_backend_utils as triton  # type: ignore[import-not-found]  # only inside the server

        given = [triton.Tensor("input_ids", tokens), triton.Tensor("attention_mask", self._mask)]
        response = yield _request(str(self.encoder), given, self._outputs["encoder"], self.version)
        self._hold(response)

    def step(self, tokens: Array) -> Generator[Request, Response, Array]:
        """Run the decoder on new tokens, int64 [rows, new]; return the logits of the last token, [rows, vocabulary]."""
        import triton_python_backend_utils as triton

        inputs = {"input_ids": tokens, **self._masks(tokens.shape[1])}
        given = [triton.Tensor(name, array) for name, array in inputs.items()]
        response = yield _request(self.model, [*given, *self._held.values()], self._outputs["decoder"], self.version)
        self._seen += tokens.shape[1]
        return self._hold(response)[:, -1]

    def _masks(self, new: int) -> dict[str, Array]:
        """Return the masks and positions for the decoder; without an encoder, the mask grows by the new tokens."""
        import numpy as np

        from .greedy import positions  # type: ignore[import-not-found]  # lies beside this file where it is served

        if self.encoder is not None:
            return {"encoder_attention_mask": self._mask}
        rows, masked = self._mask.shape
        behind = np.ones((rows, self._seen + new - masked), dtype=np.int64)  # no column in the call with the prompts
        self._mask = np.hstack([self._mask, behind])
        return {"attention_mask": self._mask, "position_ids": positions(self._mask, new)}

    def _hold(self, response: Response) -> Array:
        """Keep a response's keys and values for the next call; return the response's logits, or None without logits."""
        import triton_python_backend_utils as triton

        if response.has_error():
            raise RuntimeError(response.error().message())
        logits = None
        for tensor in response.output_tensors():
            if tensor.name() == "logits":
                logits = tensor.as_numpy()
                continue
            name = "past_key_values" + tensor.name()[len("present") :]
            self._held[name] = triton.Tensor.from_dlpack(name, tensor.to_dlpack())
        return logits


def _nothing(past: Mapping[str, Sequence[Any]], rows: int) -> Generator[tuple[str, Any], None, None]:
    """Yield an empty KV cache; `past` has the type, the number of heads and the head size of each tensor, by name."""
    import numpy as np
    import triton_python_backend_utils as triton

    for name, (dtype, heads, size) in past.items():
        yield name, triton.Tensor(name, np.zeros((rows, heads, 0, size), dtype=dtype))


def _request(model: str, given: list[Any], outputs: list[str], version: int) -> Request:
    import triton_python_backend_utils as triton

    return triton.InferenceRequest(
        model_name=model, model_version=version, requested_output_names=outputs, inputs=given
    )
