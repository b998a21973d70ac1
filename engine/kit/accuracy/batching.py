"""Batching: which rows a package may join, by what `validate` measured of a row alone and among others."""

from __future__ import annotations

import json
from enum import Enum
from pathlib import Path

from engine.errors import StepError
from engine.system import regular

_FILE = "batching.json"
"""The file beside a built model whose rows depend on each other; it holds no figures."""
_ROWS = "rows"


class RowBatching(Enum):
    """Which rows of requests run together; the value stands in reports, in `batching.json` and in config.pbtxt."""

    TOGETHER = "together"
    """Any rows: the answer to a row does not depend on the others."""
    EQUAL_LENGTHS = "equal lengths"
    """Texts of equal lengths, since padding changes the answers."""
    ALONE = "alone"
    """Each row by itself, since the answer to a row depends on the others."""

    def note(self) -> str | None:
        """Return what a report says about a model whose rows depend on each other; None for any other model."""
        return _NOTES.get(self)


_NOTES = {
    RowBatching.EQUAL_LENGTHS: "padding changes the answers: texts of different lengths are packaged one by one",
    RowBatching.ALONE: "a row's answer depends on the rows beside it: packaged without batching, one by one",
}


def mixing(*, layout: str, padding: str, doc_stride: int | None) -> dict[str, str]:
    """Return the fields of a recipe that ask for texts of different lengths in one batch, with their values."""
    stated = {
        "package.triton.layout": layout if layout == "fused" else None,
        "package.triton.padding": padding if padding == "buckets" else None,
        "package.answers.doc_stride": None if doc_stride is None else str(doc_stride),
    }
    return {field: value for field, value in stated.items() if value is not None}


def write(directory: Path, batching: RowBatching) -> None:
    """Write which rows may be joined beside the model in `directory`; nothing where all may be."""
    if batching is not RowBatching.TOGETHER:
        (directory / _FILE).write_text(json.dumps({_ROWS: batching.value}) + "\n", "utf-8")


def read(directory: Path) -> RowBatching:
    """Return which rows of the model in `directory` may be joined. Raises StepError for a file that does not say it."""
    path = directory / _FILE
    if not path.is_file():
        return RowBatching.TOGETHER
    try:
        return RowBatching(json.loads(regular.read(path))[_ROWS])
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise StepError(f"nothing says which rows may be joined: {_FILE} cannot be read", [f"{error}"]) from None
