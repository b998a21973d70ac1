"""A hand-written FastAPI server for a model: a tokenizer, an ONNX Runtime session, one endpoint.

    MODEL=folder/of/the/model.onnx TOKENIZER=tokenizer.json python -m uvicorn --app-dir benchmarks fastapi_server:app

`curl -G --data-urlencode query="What a day." localhost:8000/predict` returns the logits of a classifier. For
other models it returns a sentence's embedding: the normalized mean of the hidden states. The server imports nothing of
this project.
"""

from __future__ import annotations

import os
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime
import tokenizers


class Model:
    """A model in this process: text in, an answer out. Benchmarks also call the model without a server."""

    def __init__(self, folder: Path, tokenizer: Path, *, threads: int, level: str) -> None:
        self.tokenizer = tokenizers.Tokenizer.from_file(str(tokenizer))
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = threads
        options.graph_optimization_level = getattr(onnxruntime.GraphOptimizationLevel, level)
        self.session = onnxruntime.InferenceSession(
            str(folder / "model.onnx"), options, providers=["CPUExecutionProvider"]
        )
        self.inputs = [each.name for each in self.session.get_inputs()]
        given = [each.name for each in self.session.get_outputs()]
        self.output = next(name for name in ("logits", "sentence_embedding", "last_hidden_state") if name in given)

    def __call__(self, text: str) -> np.ndarray:
        """Return the answer to a text: float32 [classes] or [hidden]."""
        row = self.tokenizer.encode(text)
        every = {"input_ids": row.ids, "attention_mask": row.attention_mask, "token_type_ids": row.type_ids}
        feed = {name: np.array([every[name]], np.int64) for name in self.inputs}
        [output] = self.session.run([self.output], feed)
        if self.output != "last_hidden_state":
            return output[0]
        vector = np.array(row.attention_mask, np.float32) @ output[0] / sum(row.attention_mask)
        return vector / np.linalg.norm(vector)


@cache
def model() -> Model:
    """Return the model that the environment variables name."""
    environment = os.environ
    level = environment.get("LEVEL", "ORT_ENABLE_ALL")
    return Model(
        Path(environment["MODEL"]),
        Path(environment["TOKENIZER"]),
        threads=int(environment.get("THREADS", "0")),
        level=level,
    )


def __getattr__(name: str) -> Any:
    """Create the app when a server reads it, so that `Model` can be imported without FastAPI."""
    if name != "app":
        raise AttributeError(name)
    import fastapi

    app = fastapi.FastAPI()
    answer = model()

    @app.get("/predict")
    def predict(query: str) -> list[float]:
        return answer(query).tolist()

    return app
