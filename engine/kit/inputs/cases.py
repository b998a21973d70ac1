"""Cases: inputs of a model with what the original answers to them, kept as a directory."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from engine.errors import StepError

if TYPE_CHECKING:
    import numpy as np

Kind = Literal["sample", "right-padded", "left-padded", "holed", "random", "tensors"]
"""Where the inputs come from: one sample alone, several padded into a batch, seeded tensors, the user's own tensors."""

LIST = "cases.json"
TENSORS = "tensors.npz"


@dataclass(frozen=True)
class Case:
    """One call of the model: what went in and, once a model has run, what came out.

    `text` is what a reader may recognise the case by; `label` the expected class, where the samples tell one.
    """

    name: str
    text: str
    kind: Kind
    inputs: dict[str, np.ndarray]
    outputs: dict[str, np.ndarray]
    label: int | None = None


def save(cases: Sequence[Case], directory: Path) -> None:
    """Write the cases to `directory`: the same cases give the same bytes."""
    import numpy as np

    directory.mkdir(parents=True, exist_ok=True)
    arrays: list[np.ndarray] = []
    listed = [_describe(case, arrays) for case in cases]
    (directory / LIST).write_text(json.dumps(listed, indent=1, ensure_ascii=False) + "\n", "utf-8")
    # Arrays go by number: a tensor's name may hold what a zip archive takes for a path.
    numbered: dict[str, Any] = {str(number): array for number, array in enumerate(arrays)}
    np.savez(directory / TENSORS, allow_pickle=False, **numbered)


def load(directory: Path) -> list[Case]:
    """Return the cases that `save` wrote. Raises StepError where the directory holds none."""
    import numpy as np

    if not (directory / LIST).is_file():
        raise StepError(f"there are no cases in this directory: {LIST} is missing")
    listed = json.loads((directory / LIST).read_text("utf-8"))
    with np.load(directory / TENSORS, allow_pickle=False) as tensors:
        return [_read(entry, tensors) for entry in listed]


def count_kinds(cases: Iterable[Case]) -> dict[str, int]:
    """Return how many cases there are of each kind."""
    counts: dict[str, int] = {}
    for case in cases:
        counts[case.kind] = counts.get(case.kind, 0) + 1
    return counts


def _describe(case: Case, arrays: list[np.ndarray]) -> dict[str, Any]:
    return {
        "name": case.name,
        "text": case.text,
        "kind": case.kind,
        "label": case.label,
        "inputs": _number(case.inputs, arrays),
        "outputs": _number(case.outputs, arrays),
    }


def _number(tensors: Mapping[str, np.ndarray], arrays: list[np.ndarray]) -> dict[str, int]:
    """Append the tensors to `arrays` and return the number of each."""
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
    )
