"""Requests: the arrays of each request, made of a user's rows and tensors as the model's inputs need them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import cycle, groupby, islice
from typing import TYPE_CHECKING, Any

from engine.client.model_metadata import ModelMetadata, TensorMetadata
from engine.client.rows import QueryInput, QueryRow
from engine.errors import UsageError
from engine.runtimes.triton_tensors import IMAGE, MAX_NEW_TOKENS, STOP, TEXT
from engine.text import lists

if TYPE_CHECKING:
    import numpy as np

_LABEL = "label"
"""The array of samples that holds the expected classes."""
_SHOWN = 80
"""The largest number of characters of a user's input that an error shows."""


@dataclass(frozen=True)
class InferRequest:
    """One request: the arrays of its inputs by name, and its rows; a request of tensors alone has no rows."""

    arrays: Mapping[str, np.ndarray]
    rows: tuple[QueryRow, ...] = ()


def build(
    model: ModelMetadata,
    query: QueryInput,
    *,
    rows_each: int | None = None,
    max_new_tokens: int | None = None,
    stop: Sequence[str] = (),
) -> list[InferRequest]:
    """Return the requests for the user's input, each with as many rows as the model takes.

    With `rows_each`, every request has exactly this number of rows, and rows are repeated to fill the last request.
    Raises UsageError where the model cannot take the user's input.
    """
    stated = {name: _of_json(_input(model, name), value) for name, value in query.json_values.items()}
    samples = [sample | stated for sample in _samples(model, query.arrays)]
    limit = _most_rows(model)
    if rows_each is not None and rows_each > limit:
        raise UsageError(f"{model.name} takes {lists.counted(limit, 'row')} a request, not {rows_each}")
    rows = query.rows
    if rows_each is not None:
        rows = tuple(islice(cycle(rows), -(-len(rows) // rows_each) * rows_each))
    batches = [InferRequest(_of_rows(model, batch) | samples[0], batch) for batch in _batches(rows, rows_each or limit)]
    requests = [
        InferRequest({**request.arrays, **_settings(model, request, max_new_tokens, stop)}, request.rows)
        for request in batches or [InferRequest(sample) for sample in samples]
    ]
    missing = [tensor for tensor in model.inputs if not tensor.optional and tensor.name not in requests[0].arrays]
    if missing:
        raise UsageError(
            f"{model.name} also needs {', '.join(tensor.name for tensor in missing)}",
            [f"it takes {tensor}" for tensor in model.inputs],
            _option_for(missing[0]),
        )
    return requests


def _samples(model: ModelMetadata, arrays: Mapping[str, np.ndarray]) -> list[dict[str, np.ndarray]]:
    """Return each request's tensors in an .npz, without labels; an axis more than the input's counts samples."""
    taken = {name: array for name, array in arrays.items() if name != _LABEL or model.input(name) is not None}
    inputs = {name: _input(model, name) for name in taken}
    whole = {name: array for name, array in taken.items() if array.ndim == len(inputs[name].shape) + 1}
    counts = {len(array) for array in whole.values()}
    if len(counts) != 1 or not all(counts):
        return [{name: _of_array(inputs[name], array) for name, array in taken.items()}]
    [count] = counts
    rows = {
        name: array if name in whole else array[:, None] for name, array in taken.items() if array.shape[:1] == (count,)
    }
    return [
        {name: _of_array(inputs[name], rows[name][at] if name in rows else array) for name, array in taken.items()}
        for at in range(count)
    ]


def _option_for(tensor: TensorMetadata) -> str:
    """Return the hint that names the command-line option for giving an input of the model."""
    options = {TEXT: "--text TEXT or --file FILE", IMAGE: "--image FILE"}
    return f"give it by {options.get(tensor.name, f'--input {tensor.name}=JSON, or --file FILE.npz')}"


def _most_rows(model: ModelMetadata) -> int:
    """Return how many rows a request may have: 1 for a streaming model and for an input without a batch axis."""
    first = next((tensor for tensor in model.inputs if tensor.name in (TEXT, IMAGE)), None)
    if model.decoupled or (first is not None and len(first.shape) == 1):
        return 1
    if model.max_batch_size or first is None:
        return max(model.max_batch_size, 1)
    return first.shape[0] if first.shape[0] > 0 else 1


def _batches(rows: Sequence[QueryRow], limit: int) -> Iterator[tuple[QueryRow, ...]]:
    """Yield the rows of each request: neighbouring rows of one kind, at most `limit` rows."""
    for _, group in groupby(rows, key=lambda row: row.kind):
        alike = tuple(group)
        yield from (alike[start : start + limit] for start in range(0, len(alike), limit))


def _of_rows(model: ModelMetadata, rows: Sequence[QueryRow]) -> dict[str, np.ndarray]:
    """Return the rows as arrays for the model's inputs TEXT and IMAGE. Raises UsageError where it lacks one."""
    arrays: dict[str, np.ndarray] = {}
    if rows[0].image is not None:
        arrays[IMAGE] = _of_values(model, IMAGE, "images", [[row.image] for row in rows], rows[0].label)
    if rows[0].texts:
        values = [[text.encode() for text in row.texts] for row in rows]
        arrays[TEXT] = _of_values(model, TEXT, "texts", values, rows[0].label)
    return arrays


def _of_values(model: ModelMetadata, name: str, noun: str, values: Sequence[list[Any]], label: str) -> np.ndarray:
    """Return the values of each row as the array for an input; `label` is what the user knows the first row by."""
    import numpy as np

    tensor = model.input(name)
    if tensor is None:
        raise UsageError(
            f"{model.name} takes no {noun}",
            [f"it takes {each}" for each in model.inputs],
            _option_for(model.inputs[0]),
        )
    texts_a_row = tensor.shape[-1] if tensor.shape else 1
    if texts_a_row > 0 and texts_a_row != len(values[0]):
        counts = {1: "one text", 2: "two texts (a question and its context, or a pair)"}
        raise UsageError(
            f"{model.name} takes {counts.get(texts_a_row, f'{texts_a_row} texts')} a row",
            [f"given: {label[:_SHOWN]!r}"],
            "--text QUESTION --pair CONTEXT" if texts_a_row > 1 else "leave --pair out",
        )
    array = np.empty((len(values), len(values[0])), dtype=object)
    array[:] = values
    return array[0] if len(tensor.shape) == 1 else array


def _settings(
    model: ModelMetadata, request: InferRequest, max_new_tokens: int | None, stop: Sequence[str]
) -> dict[str, np.ndarray]:
    """Return the arrays of the inputs that control text generation, with the same values for each row."""
    import numpy as np

    settings: dict[str, np.ndarray] = {}
    if max_new_tokens is not None:
        settings[MAX_NEW_TOKENS] = np.array([max_new_tokens])
    if stop:
        settings[STOP] = np.array([each.encode() for each in stop], dtype=object)
    for name in settings:
        if model.input(name) is None:
            option = f"--{name.lower().replace('_', '-')}"
            raise UsageError(f"{model.name} does not generate text: {option} has no effect on it")
    rows = max(len(request.rows), 1)
    batched = {tensor.name for tensor in model.inputs if len(tensor.shape) > 1}
    arrays = {name: np.tile(value, (rows, 1)) if name in batched else value for name, value in settings.items()}
    return {name: _of_array(_input(model, name), array) for name, array in arrays.items()}


def _input(model: ModelMetadata, name: str) -> TensorMetadata:
    tensor = model.input(name)
    if tensor is None:
        raise UsageError(f"{model.name} has no input {name!r}", [f"it takes {each}" for each in model.inputs])
    return tensor


def _of_json(tensor: TensorMetadata, value: Any) -> np.ndarray:
    import numpy as np

    if tensor.datatype == "BYTES":
        texts = np.array(value, dtype=object)
        if not all(isinstance(text, str) for text in texts.ravel()):
            raise UsageError(f"{tensor.name} takes texts", [repr(value)[:_SHOWN]])
        return _of_array(tensor, texts)
    try:
        array = np.array(value)
    except ValueError as error:
        raise UsageError(f"the value of {tensor.name} has rows of different lengths", [str(error)]) from error
    return _of_array(tensor, array)


def _of_array(tensor: TensorMetadata, array: np.ndarray) -> np.ndarray:
    """Return an array as a model's input expects it. Raises UsageError for a value that cannot be held."""
    import numpy as np
    from tritonclient.utils import triton_to_np_dtype

    if tensor.datatype == "BYTES":
        texts = [text.encode() if isinstance(text, str) else text for text in array.ravel().tolist()]
        return _shaped(tensor, np.array(texts, dtype=object).reshape(array.shape))
    dtype = np.dtype(triton_to_np_dtype(tensor.datatype))
    if array.dtype.kind not in "biuf":
        raise UsageError(f"{tensor.name} takes numbers ({tensor.datatype})", [f"given: {array.dtype}"])
    with np.errstate(over="ignore", invalid="ignore"):
        cast = array.astype(dtype)
    lossy = dtype.kind in "iub" and not np.array_equal(cast, array)
    if lossy or not np.array_equal(np.isfinite(cast), np.isfinite(array)):
        given = f"given: {array.dtype} with values that do not fit"
        raise UsageError(f"{tensor.name} takes {tensor.datatype}", [given])
    return _shaped(tensor, cast)


def _shaped(tensor: TensorMetadata, array: np.ndarray) -> np.ndarray:
    """Return the array, with an axis of size 1 in front where only the axis of rows is missing. Raises UsageError."""
    if array.ndim == len(tensor.shape) - 1:
        array = array[None]
    same_axes = array.ndim == len(tensor.shape)
    if not same_axes or any(size not in (-1, own) for size, own in zip(tensor.shape, array.shape, strict=True)):
        given = " x ".join(map(str, array.shape)) or "one number"
        raise UsageError(f"{tensor}", [f"given: {given}"], "give that shape")
    return array
