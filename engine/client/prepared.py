"""Prepared calls: one request after the other to a model on a Triton server, as tritonclient sends them."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from engine.errors import StepError
from engine.kit.inputs import exact_texts
from engine.kit.inputs.tokenizer import Tokenizer
from engine.kit.triton import config as configs
from engine.kit.triton import text

if TYPE_CHECKING:
    import numpy as np

    from engine.server import Server

    Tensors = Mapping[str, np.ndarray]

_PAIR = 2
_PATIENCE_SECONDS = 300


@dataclass(frozen=True)
class Entry:
    """What clients ask of a package: a model that takes texts, or else the model itself with its tensors."""

    name: str
    config: Any
    """Its ModelConfig."""
    tokenizer: Path
    """The tokenizer.json that makes tensors of texts, where there is one."""

    @classmethod
    def read(cls, repository: Path, name: str, *, model: str) -> Self:
        """Return the entry of the package of `model` in a repository; `name` is what clients call."""
        config = configs.read(repository / name)
        takes_texts = [tensor.name for tensor in config.input] == [text.NAME]
        config = config if takes_texts else configs.read(repository / model)
        return cls(config.name, config, repository / f"{model}_tokenizer" / "1" / "tokenizer.json")

    def arrays(self, inputs: Tensors) -> dict[str, np.ndarray]:
        """Return what is sent for the inputs of the model itself: as many texts of as many tokens, or those inputs.

        Raises StepError where no text has that many tokens.
        """
        if self.config.input[0].name == text.NAME:
            return {text.NAME: self._texts(*inputs["input_ids"].shape)}
        batched = self.config.max_batch_size > 0
        # One number a row is [rows] to the model and [rows, 1] to Triton.
        return {name: each[..., None] if each.ndim == batched else each for name, each in inputs.items()}

    def _texts(self, rows: int, tokens: int) -> np.ndarray:
        import numpy as np
        import tokenizers

        backend = tokenizers.Tokenizer.from_file(str(self.tokenizer))
        backend.no_padding()
        paired = self.config.input[0].dims[-1] == _PAIR
        drawn = exact_texts.draw(Tokenizer(backend, pad=0), rows=rows, tokens=tokens, paired=paired)
        return np.array([[each.encode() for each in row] for row in drawn], dtype=object)


@dataclass(frozen=True)
class Client:
    """A connection, and the module of tritonclient that made it: both protocols have the same names in it."""

    way: str
    module: Any
    connection: Any
    options: Mapping[str, Any]


@contextlib.contextmanager
def client(way: str, server: Server) -> Iterator[Client]:
    """Connect to a server; `way` is triton-grpc or triton-http."""
    if way == "triton-grpc":
        from tritonclient import grpc as module

        made = Client(way, module, module.InferenceServerClient(server.grpc), {"client_timeout": _PATIENCE_SECONDS})
    else:
        from tritonclient import http as module

        patience = {"connection_timeout": _PATIENCE_SECONDS, "network_timeout": _PATIENCE_SECONDS}
        made = Client(way, module, module.InferenceServerClient(server.http, **patience), {})
    try:
        yield made
    finally:
        made.connection.close()


def prepare(asker: Client, entry: Entry, inputs: Tensors) -> Callable[[], object]:
    """Return a call that sends one request and has every output of the answer as an array.

    The request is put together anew each time, as for one that comes from elsewhere. Raises StepError where the
    server does not answer the first one.
    """
    from tritonclient.utils import InferenceServerException, np_to_triton_dtype

    arrays = entry.arrays(inputs)
    kinds = {name: np_to_triton_dtype(array.dtype) for name, array in arrays.items()}
    outputs = [tensor.name for tensor in entry.config.output]

    def call() -> None:
        asked = []
        for name, array in arrays.items():
            value = asker.module.InferInput(name, array.shape, kinds[name])
            value.set_data_from_numpy(array)
            asked.append(value)
        answer = asker.connection.infer(entry.name, asked, **asker.options)
        for name in outputs:
            answer.as_numpy(name)

    try:
        call()  # says clearly what is wrong
    except InferenceServerException as error:
        raise StepError(
            f"the server does not answer {entry.name} over {asker.way.removeprefix('triton-')}",
            [str(error.message())],
            "is the shape within the profiles and package.triton.max_batch_size?",
        ) from error
    return call
