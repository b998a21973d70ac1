"""Text generation in Triton's python backend: packages carry generate.py as model.py."""

from __future__ import annotations

import json
from collections.abc import Generator
from pathlib import Path
from typing import Any

from .asked import Asked, Row
from .past import Past
from .pieces import Pieces
from .prompts import Prompts
from .unread import leave_unread

Request = Any
Response = Any


class TritonPythonModel:
    """Takes texts and returns generated text: at once, or in pieces where the configuration says `decoupled`.

    Each graph is a Triton model of its own, which the python model calls on the same server. The texts of requests that
    arrive together are generated as one batch.
    """

    def initialize(self, args: dict[str, str]) -> None:
        """Load tokenizer.json and generation.json. Triton calls `initialize` once, when it loads the model."""
        import tokenizers
        import triton_python_backend_utils as triton  # type: ignore[import-not-found]  # only inside the server

        from .greedy import Rules  # type: ignore[import-not-found]  # lies beside this file where it is served

        folder = Path(args["model_repository"]) / args["model_version"]
        # All models of a package have one version: an older one, still loaded, must not call the graphs of a newer.
        self.version = int(args["model_version"])
        said = json.loads((folder / "generation.json").read_text("utf-8"))
        self.settings, self.graphs = said["settings"], said["graphs"]
        self.alone = said.get("alone", False)  # whether a text is answered otherwise beside other texts
        self.rules = Rules(**self.settings["rules"])
        self.tokenizer = tokenizers.Tokenizer.from_file(str(folder / "tokenizer.json"))
        self.prompts = Prompts(self.tokenizer, said["prompts"])
        leave_unread(self.prompts.max_text_bytes)
        self.streams = triton.using_decoupled_model_transaction_policy(json.loads(args["model_config"]))

    def execute(self, requests: list[Request]) -> Any:
        """Answer requests. When streaming, return a coroutine, so that Triton can send further requests meanwhile."""
        return self._stream(requests) if self.streams else self._answer(requests)

    def _answer(self, requests: list[Request]) -> list[Response]:
        asked = [self._read(request) for request in requests]
        loop = self._generate([each for each in asked if each.error is None])
        try:
            call = next(loop)
            while True:
                call = loop.send(call.exec())
        except StopIteration:
            return [each.response() for each in asked]

    async def _stream(self, requests: list[Request]) -> None:
        asked = [self._read(request) for request in requests]
        for each in asked:
            each.send()  # a request with wrong inputs gets its error at once
        loop = self._generate([each for each in asked if each.error is None])
        try:
            call = next(loop)
            while True:
                call = loop.send(await call.async_exec())
        except StopIteration:
            return

    def _generate(self, asked: list[Asked]) -> Generator[Request, Response, None]:
        """Yield requests to the graphs and receive their responses, until every row is finished.

        An error in a call of a graph fails all requests of the batch, and no request of another batch.
        """
        try:
            rows = [row for each in asked for row in each.rows]
            for group in [[row] for row in rows] if self.alone else [rows]:
                if group:
                    yield from self._together(group, asked)
        except Exception as error:  # noqa: BLE001 - the server goes on, whatever it is
            for each in asked:
                each.fail(f"{type(error).__name__}: {error}")
                each.send()

    def _together(self, rows: list[Row], asked: list[Asked]) -> Generator[Request, Response, None]:
        import numpy as np

        from .greedy import Greedy, padded

        start = self.settings["decoder_start_token_id"]
        begun = [row.prompt for row in rows] if start is None else [[start]] * len(rows)
        greedy = Greedy(
            begun,
            self.rules,
            max_new_tokens=[row.most for row in rows],
            samplers=[row.sampler for row in rows],
            penalties=[row.penalty for row in rows],
        )
        pad = self.settings["pad_token_id"]
        tokens, mask = padded([row.prompt for row in rows], pad, left=start is None)
        past = Past(self.graphs, mask, self.version)
        if start is not None:
            yield from past.encoded(tokens)
            tokens = np.array(begun, dtype=np.int64)
        while not greedy.done:
            logits = yield from past.step(tokens)
            tokens = greedy.choose(logits)[:, None]
            for number, row in enumerate(rows):
                row.grow(greedy.made[number], greedy.reasons[number])
            for each in asked:
                each.look()
                each.send()
            for number, row in enumerate(rows):
                if row.reason is not None:
                    greedy.stop(number)

    def _read(self, request: Request) -> Asked:
        """Read a request; where the request's inputs are wrong, the returned object carries the error."""
        asked = Asked(request, streams=self.streams)
        try:
            for text, most, stops in asked.texts(self.settings["max_new_tokens"]):
                prompt = self.prompts.tokens(text, new=most)
                context = self.prompts.context(prompt)
                every = [*self.settings["stop_strings"], *stops]
                pieces = Pieces(self._decode, context=context, stops=every, whole=not self.streams)
                asked.rows.append(Row(prompt, most, pieces, asked.sampling, len(asked.rows)))
        except ValueError as error:
            asked.refuse(str(error))
        return asked

    def _decode(self, tokens: list[int]) -> str:
        return str(self.tokenizer.decode(tokens, skip_special_tokens=True))
