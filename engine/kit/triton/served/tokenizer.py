"""The tokenizer as a model of Triton's python backend: this very file is shipped in packages as model.py."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any


class TritonPythonModel:
    """Texts in, the tensors of a text model out.

    The tokenizer.json beside this file says how texts are cut and padded. Each row of TEXT holds one text, or two
    that belong together. Outputs have the names and types that the configuration gives them.
    """

    def initialize(self, args: dict[str, str]) -> None:
        """Load the tokenizer; Triton calls this once."""
        import tokenizers
        import triton_python_backend_utils as triton  # type: ignore[import-not-found]  # only inside the server

        folder = Path(args["model_repository"]) / args["model_version"]
        self.tokenizer = tokenizers.Tokenizer.from_file(str(folder / "tokenizer.json"))
        outputs = json.loads(args["model_config"])["output"]
        self.dtypes = {each["name"]: triton.triton_string_to_numpy(each["data_type"]) for each in outputs}

    def execute(self, requests: list[Any]) -> list[Any]:
        """Answer each request by itself: what is wrong with one is no fault of the others."""
        import triton_python_backend_utils as triton

        answers = []
        for request in requests:
            rows = triton.get_input_tensor_by_name(request, "TEXT").as_numpy()
            try:
                made = self.tensors([[text.decode("utf-8") for text in row] for row in rows])
            except ValueError as error:
                answers.append(triton.InferenceResponse(error=triton.TritonError(f"TEXT: {error}")))
                continue
            answers.append(triton.InferenceResponse([triton.Tensor(name, array) for name, array in made.items()]))
        return answers

    def tensors(self, rows: list[list[str]]) -> dict[str, Any]:
        """Return each output, [rows, tokens]. Raises ValueError for a row that is neither a text nor two."""
        import numpy as np

        if not rows or any(len(row) not in (1, 2) for row in rows):
            raise ValueError("each row holds one text, or two that belong together")
        encoded = self.tokenizer.encode_batch([row[0] if len(row) == 1 else (row[0], row[1]) for row in rows])
        every = {
            "input_ids": [each.ids for each in encoded],
            "attention_mask": [each.attention_mask for each in encoded],
            "token_type_ids": [each.type_ids for each in encoded],
            "position_ids": [list(range(len(each.ids))) for each in encoded],
        }
        return {name: np.array(every[name], dtype=dtype) for name, dtype in self.dtypes.items()}
