"""The rows of a request one by one: the work of the entry of a package whose rows must not stand together."""

from __future__ import annotations

from pathlib import Path
from typing import Any

_PLACES, _NO_PLACE = ("offsets", "boxes"), -1
"""Outputs that are filled up with -1: 0 would be the first character of a text, or the edge of an image."""


class Work:
    """Calls the package's ensemble for each row of a request alone, and joins the answers.

    Settings: `model`, the name of the ensemble, and `outputs`, the names of its outputs.
    """

    def __init__(self, folder: Path, settings: dict[str, Any]) -> None:
        self.model, self.outputs = settings["model"], settings["outputs"]
        # All models of a package have one version: an older one, still loaded, must not call the models of a newer.
        self.version = int(folder.name)

    def __call__(self, given: dict[str, Any]) -> dict[str, Any]:
        """Return the answers to all rows. Shorter answers are filled up with 0, "" or, for offsets and boxes, -1.

        Raises ValueError for a request without rows, and for rows that the ensemble refuses.
        """
        count = len(next(iter(given.values())))
        if not count or any(len(array) != count for array in given.values()):
            raise ValueError(f"{', '.join(given)}: at least one row is needed, and equally many of each")
        answers = [self.called({name: array[row : row + 1] for name, array in given.items()}) for row in range(count)]
        return {name: _joined(name, [answer[name] for answer in answers]) for name in self.outputs}

    def called(self, given: dict[str, Any]) -> dict[str, Any]:
        """Return the answer to one row. Raises ValueError where the client is wrong, else RuntimeError."""
        import triton_python_backend_utils as triton  # type: ignore[import-not-found]  # only inside the server

        request = triton.InferenceRequest(
            model_name=self.model,
            model_version=self.version,
            requested_output_names=self.outputs,
            inputs=[triton.Tensor(name, array) for name, array in given.items()],
        )
        response = request.exec()
        if response.has_error():
            # Triton hands on no code of an error here. The message about a client's mistake begins with the input.
            message = response.error().message().removeprefix(f"in ensemble '{self.model}', ")
            raise (ValueError if any(message.startswith(f"{name}: ") for name in given) else RuntimeError)(message)
        return {tensor.name(): tensor.as_numpy() for tensor in response.output_tensors()}


def _joined(name: str, rows: list[Any]) -> Any:
    """Return the answers to rows, each [1, ...], as one array."""
    import numpy as np

    shape = [len(rows), *(max(sizes) for sizes in zip(*(row.shape[1:] for row in rows), strict=True))]
    fill: Any = b"" if rows[0].dtype.kind == "O" else _NO_PLACE if name.endswith(_PLACES) else 0
    joined = np.full(shape, fill, dtype=rows[0].dtype)
    for number, row in enumerate(rows):
        place: tuple[Any, ...] = (number, *map(slice, row.shape[1:]))
        joined[place] = row[0]
    return joined
