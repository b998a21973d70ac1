"""Requests: rows and tensors -> the arrays of each request, as the model's own inputs want them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import cycle, groupby, islice
from typing import TYPE_CHECKING, Any

from engine.client.entry import IMAGE, MAX_NEW_TOKENS, STOP, TEXT, Entry, Tensor
from engine.client.rows import Row, Said
from engine.errors import UsageError

if TYPE_CHECKING:
    import numpy as np


@dataclass(frozen=True)
class Asked:
    """One request: its arrays by input, and the rows that it asks about (none where it is tensors)."""

    arrays: Mapping[str, np.ndarray]
    rows: tuple[Row, ...] = ()


def build(
    entry: Entry, said: Said, *, each: int | None = None, max_new_tokens: int | None = None, stop: Sequence[str] = ()
) -> list[Asked]:
    """Return the requests: as many rows in each as the model takes, or exactly `each`, rows repeated to fill them.

    Raises UsageError where what is said does not suit the model.
    """
    given = {name: _checked(_known(entry, name), array) for name, array in said.arrays.items()}
    given |= {name: _of_json(_known(entry, name), value) for name, value in said.plain.items()}
    limit = _most_rows(entry)
    if each is not None and each > limit:
        raise UsageError(f"{entry.name} takes {limit} row{'s' * (limit > 1)} a request, not {each}")
    rows = tuple(islice(cycle(said.rows), -(-len(said.rows) // each) * each)) if each else said.rows
    made = [Asked(_of_rows(entry, few) | given, few) for few in _together(rows, each or limit)] or [Asked(given)]
    made = [Asked({**one.arrays, **_settings(entry, one, max_new_tokens, stop)}, one.rows) for one in made]
    missing = [tensor for tensor in entry.inputs if not tensor.optional and tensor.name not in made[0].arrays]
    if missing:
        raise UsageError(
            f"{entry.name} also needs {', '.join(tensor.name for tensor in missing)}",
            [f"it takes {tensor}" for tensor in entry.inputs],
            _how(missing[0]),
        )
    return made


def _how(tensor: Tensor) -> str:
    ways = {TEXT: "--text TEXT or --file FILE", IMAGE: "--image FILE"}
    return f"give it by {ways.get(tensor.name, f'--input {tensor.name}=JSON, or --file FILE.npz')}"


def _most_rows(entry: Entry) -> int:
    first = next((tensor for tensor in entry.inputs if tensor.name in (TEXT, IMAGE)), None)
    if entry.decoupled or (first is not None and len(first.shape) == 1):
        return 1
    if entry.largest or first is None:
        return max(entry.largest, 1)
    return first.shape[0] if first.shape[0] > 0 else 1


def _together(rows: Sequence[Row], limit: int) -> Iterator[tuple[Row, ...]]:
    """Give rows that can be one request: neighbours of one kind, `limit` at the most."""
    for _, alike in groupby(rows, key=lambda row: row.kind):
        kept = tuple(alike)
        yield from (kept[start : start + limit] for start in range(0, len(kept), limit))


def _of_rows(entry: Entry, rows: Sequence[Row]) -> dict[str, np.ndarray]:
    import numpy as np

    name, what = (IMAGE, "images") if rows[0].image is not None else (TEXT, "texts")
    tensor = entry.input(name)
    if tensor is None:
        raise UsageError(
            f"{entry.name} takes no {what}", [f"it takes {each}" for each in entry.inputs], _how(entry.inputs[0])
        )
    values = [[row.image] if row.image is not None else [text.encode() for text in row.texts] for row in rows]
    wanted = tensor.shape[-1] if tensor.shape else 1
    if wanted > 0 and wanted != len(values[0]):
        counts = {1: "one text", 2: "two texts (a question and its context, or a pair)"}
        raise UsageError(
            f"{entry.name} takes {counts.get(wanted, f'{wanted} texts')} a row",
            [f"given: {rows[0].label[:80]!r}"],
            "--text QUESTION --pair CONTEXT" if wanted > 1 else "leave --pair out",
        )
    array = np.empty((len(values), len(values[0])), dtype=object)
    array[:] = values
    return {name: array[0] if len(tensor.shape) == 1 else array}


def _settings(entry: Entry, asked: Asked, max_new_tokens: int | None, stop: Sequence[str]) -> dict[str, np.ndarray]:
    """Return the settings of a generation, repeated for each row."""
    import numpy as np

    settings: dict[str, np.ndarray] = {}
    if max_new_tokens is not None:
        settings[MAX_NEW_TOKENS] = np.array([max_new_tokens], dtype=np.int32)
    if stop:
        settings[STOP] = np.array([each.encode() for each in stop], dtype=object)
    for name in settings:
        if entry.input(name) is None:
            option = f"--{name.lower().replace('_', '-')}"
            raise UsageError(f"{entry.name} does not generate: {option} says nothing to it")
    rows = max(len(asked.rows), 1)
    batched = {tensor.name for tensor in entry.inputs if len(tensor.shape) > 1}
    return {name: np.tile(value, (rows, 1)) if name in batched else value for name, value in settings.items()}


def _known(entry: Entry, name: str) -> Tensor:
    tensor = entry.input(name)
    if tensor is None:
        raise UsageError(f"{entry.name} has no input {name!r}", [f"it takes {each}" for each in entry.inputs])
    return tensor


def _of_json(tensor: Tensor, value: Any) -> np.ndarray:
    import numpy as np

    if tensor.datatype == "BYTES":
        array = np.array(value, dtype=object)
        if not all(isinstance(each, str) for each in array.ravel()):
            raise UsageError(f"{tensor.name} takes texts", [repr(value)[:80]])
        array = np.array([each.encode() for each in array.ravel()], dtype=object).reshape(array.shape)
        return _shaped(tensor, array)
    try:
        array = np.array(value)
    except ValueError as error:
        raise UsageError(f"the value of {tensor.name} has rows of different lengths", [str(error)]) from error
    return _checked(tensor, array)


def _checked(tensor: Tensor, array: np.ndarray) -> np.ndarray:
    """Return the array in the input's own datatype and shape. Raises UsageError where a value would change."""
    import numpy as np
    from tritonclient.utils import triton_to_np_dtype

    if tensor.datatype == "BYTES":
        texts = [str(each).encode() for each in array.ravel()] if array.dtype.kind == "U" else array.ravel().tolist()
        return _shaped(tensor, np.array(texts, dtype=object).reshape(array.shape))
    wanted = np.dtype(triton_to_np_dtype(tensor.datatype))
    if array.dtype.kind not in "biuf":
        raise UsageError(f"{tensor.name} takes numbers ({tensor.datatype})", [f"given: {array.dtype}"])
    with np.errstate(over="ignore", invalid="ignore"):
        cast = array.astype(wanted)
    lossy = wanted.kind in "iub" and not np.array_equal(cast, array)
    if lossy or not np.array_equal(np.isfinite(cast), np.isfinite(array)):
        raise UsageError(
            f"{tensor.name} takes {tensor.datatype}", [f"given: {array.dtype} with values that do not fit"]
        )
    return _shaped(tensor, cast)


def _shaped(tensor: Tensor, array: np.ndarray) -> np.ndarray:
    """Return the array with a first axis of one row where it lacks only that."""
    if array.ndim == len(tensor.shape) - 1:
        array = array[None]
    fits = array.ndim == len(tensor.shape) and all(
        want in (-1, size) for want, size in zip(tensor.shape, array.shape, strict=True)
    )
    if not fits:
        raise UsageError(
            f"{tensor}", [f"given: {' x '.join(map(str, array.shape)) or 'one number'}"], "give that shape"
        )
    return array
