"""Cases: inputs of a model with the outputs of the original, stored in a directory."""

from __future__ import annotations

import json
import os
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, Literal

from engine.errors import StepError
from engine.kit.inputs.token_rows import Padding

if TYPE_CHECKING:
    import numpy as np

Kind = Literal[
    "sample", "right-padded", "left-padded", "holed", "batched", "blank-row", "alone", "long", "random", "tensors"
]
"""The origin of a case: a sample, a batch of samples, random inputs, or tensors from an .npz file.

Batches differ by their masks, except `batched`: whole samples as a server joins them. A batch of the kind `blank-row`
has a row in which the mask hides every token. A case of the kind `alone` is the first row of a random batch, and a case
of the kind `long` is one row of the tokens of all texts.
"""
JOINED = frozenset({"batched", "blank-row", "alone", "long"})
"""Kinds that some originals do not take, for example an ONNX file whose first axis is no batch; these are left out."""

LABEL = "label"
"""The name of the field (.jsonl) or of the array (.npz) that holds the expected class of each sample."""
LIST = "cases.json"
TENSORS = "tensors.npz"
_PADDING = "padding.json"
_LARGE = 1 << 16
"""The number of bytes from which `Spill` moves a tensor to a file."""
_SEGMENT = 1 << 26
"""The bytes that `Spill` maps at once: each mapping needs an open file."""
_ALIGNED = 64
_LEAST = 1e-6
"""The least number by which a difference of outputs is divided to become relative."""
_ROUNDING = 1e-3
"""Upper limit of a rounding difference between outputs for the same inputs, as a share of the largest number."""


@dataclass(frozen=True)
class Case:
    """One call of a model: its inputs and, once the original has run, the original's outputs.

    `text` is the case's text as reports show it. `label` is the expected class, where the sample has one.
    """

    name: str
    text: str
    kind: Kind
    inputs: dict[str, np.ndarray]
    outputs: dict[str, np.ndarray]
    label: int | None = None
    own_inputs: dict[str, np.ndarray] | None = None
    """What the checkpoint's own tokenizer or image processor makes of the sample; None for any other case.

    `save` leaves it out.
    """
    file: str | None = None
    """The digest of the sample's image file; None for any other case."""


def save(cases: Sequence[Case], directory: Path) -> None:
    """Write the cases to `directory`. Equal cases give byte-identical files."""
    import numpy as np

    directory.mkdir(parents=True, exist_ok=True)
    arrays: list[np.ndarray] = []
    entries = [
        {
            "name": case.name,
            "text": case.text,
            "kind": case.kind,
            "label": case.label,
            **({} if case.file is None else {"file": case.file}),
            "inputs": _number(case.inputs, arrays),
            "outputs": _number(case.outputs, arrays),
        }
        for case in cases
    ]
    (directory / LIST).write_text(json.dumps(entries, indent=1, ensure_ascii=False) + "\n", "utf-8")
    # Arrays are stored by number: in a zip archive, a tensor's name with a slash would be a path.
    numbered: dict[str, Any] = {str(number): array for number, array in enumerate(arrays)}
    np.savez(directory / TENSORS, allow_pickle=False, **numbered)


def save_padding(padding: Padding, directory: Path) -> None:
    """Write how the tokenizer of the model pads texts beside the cases in `directory`."""
    (directory / _PADDING).write_text(json.dumps({"pad": padding.pad, "side": padding.side}) + "\n", "utf-8")


def padding(directory: Path) -> Padding | None:
    """Return how the tokenizer of the model pads texts; None where the cases come from no tokenizer."""
    path = directory / _PADDING
    return Padding(**json.loads(path.read_text("utf-8"))) if path.is_file() else None


class Spill:
    """A file that holds the large tensors of cases, so that many images or long outputs need little memory."""

    def __init__(self, file: IO[bytes]) -> None:
        self._file = file
        self._segments: list[np.ndarray] = []
        self._free: Any = ()
        """The unused end of the last segment."""

    def keep(self, case: Case) -> Case:
        """Return the case with its large tensors in the file, which is mapped where code reads them."""
        inputs, outputs = (
            {name: self._mapped(array) for name, array in tensors.items()} for tensors in (case.inputs, case.outputs)
        )
        return replace(case, inputs=inputs, outputs=outputs)

    def _mapped(self, array: np.ndarray) -> np.ndarray:
        import numpy as np

        if array.nbytes < _LARGE or any(np.may_share_memory(array, each) for each in self._segments):
            return array
        size = -(-array.nbytes // _ALIGNED) * _ALIGNED
        if size > len(self._free):
            begin, length = os.fstat(self._file.fileno()).st_size, -(-size // _SEGMENT) * _SEGMENT
            os.posix_fallocate(self._file.fileno(), begin, length)  # on a full disk an error; a mapping would crash
            self._segments.append(np.memmap(self._file, np.uint8, "r+", begin, (length,)))
            self._free = self._segments[-1]
        kept = np.asarray(self._free[: array.nbytes]).view(array.dtype).reshape(array.shape)
        self._free = self._free[size:]
        kept[...] = array
        return kept


def load(directory: Path) -> list[Case]:
    """Return the cases that the function `save` wrote. Raises StepError where the directory holds no cases."""
    import numpy as np

    if not (directory / LIST).is_file():
        raise StepError(f"there are no cases in this directory: {LIST} is missing")
    entries = json.loads((directory / LIST).read_text("utf-8"))
    with np.load(directory / TENSORS, allow_pickle=False) as tensors:
        return [_read(entry, tensors) for entry in entries]


def count_kinds(cases: Iterable[Case]) -> dict[str, int]:
    """Return each kind of case -> the number of cases of that kind."""
    return dict(Counter(case.kind for case in cases))


def _number(tensors: Mapping[str, np.ndarray], arrays: list[np.ndarray]) -> dict[str, int]:
    """Append the tensors to `arrays`, and return each tensor's name -> its index in `arrays`."""
    first = len(arrays)
    arrays += tensors.values()
    return {name: first + offset for offset, name in enumerate(tensors)}


def _read(entry: Mapping[str, Any], tensors: Mapping[str, np.ndarray]) -> Case:
    return Case(
        name=entry["name"],
        text=entry["text"],
        kind=entry["kind"],
        inputs={name: tensors[str(number)] for name, number in entry["inputs"].items()},
        outputs={name: tensors[str(number)] for name, number in entry["outputs"].items()},
        label=entry["label"],
        file=entry.get("file"),
    )


def is_same_but_rounding(first: np.ndarray, second: np.ndarray) -> bool:
    """Whether two outputs differ by rounding at most, as they do where memory alignment changes the order of a sum."""
    return relative_error(first, second) <= _ROUNDING


def relative_error(expected: np.ndarray, actual: np.ndarray) -> float:
    """Return the largest difference of two outputs as a share of the largest finite expected number.

    It is infinite for another shape and for other numbers that are not finite. Outputs that are no floats differ by 1
    or by 0.
    """
    import numpy as np

    if expected.shape != actual.shape:
        return float("inf")
    if expected.dtype.kind not in "fc":
        return float(not np.array_equal(expected, actual))
    finite = np.isfinite(expected)
    if not np.array_equal(expected[~finite], actual[~finite], equal_nan=True) or not np.isfinite(actual[finite]).all():
        return float("inf")
    wide = np.result_type(expected.dtype, np.float32)  # a difference in half precision would be rounded
    first, second = (array[finite].astype(wide, copy=False) for array in (expected, actual))
    return float(np.abs(first - second).max(initial=0) / max(np.abs(first).max(initial=0), _LEAST))
