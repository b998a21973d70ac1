"""Overlap: samples that occur in the files for both calibration and validation, compared as JSON text."""

from __future__ import annotations

import json
from collections.abc import Sequence
from functools import cache
from itertools import islice
from pathlib import Path

from engine.kit.inputs.cases import LABEL

_LARGEST = 64 << 20
"""The largest size in bytes of a file of samples that `recipe check` reads.

Where a file is larger, only the step `validate-onnx` finds samples that occur in both calibration and validation.
"""


LISTED = 5
"""The number of samples that an error lists."""
HINT = "a model that is validated on what it was calibrated on looks better than it is: keep them apart"
"""The hint of an error for samples in both files."""


def what(both: Sequence[str]) -> str:
    """Return the text of an error for samples that are in both files."""
    return f"{len(both)} of the samples in calibrate.samples are also in validate.samples"


@cache
def shared(calibrated: str, validated: str, limit: int) -> tuple[str, ...]:
    """Return the samples for calibration that are also in the file for validation, even if their labels differ.

    `calibrated` and `validated` are the URIs of two files of samples, "file:..." or "python:...". Of the samples for
    calibration, only the first `limit` count. Only `.jsonl` files are compared; the result is empty where a file cannot
    be read.
    """
    ours, theirs = _file(calibrated), _file(validated)
    if ours is None or theirs is None:
        return ()
    try:
        validation = {sample for _, sample in _samples(theirs)}
        calibration = islice(_samples(ours), limit)
        return tuple(f"line {number}: {sample}" for number, sample in calibration if sample in validation)
    except (OSError, ValueError):
        return ()  # the steps that read these files report such errors


def _file(uri: str) -> Path | None:
    path = Path(uri.removeprefix("file:"))
    is_small_text = uri.startswith("file:") and path.suffix == ".jsonl" and path.is_file()
    return path if is_small_text and path.stat().st_size <= _LARGEST else None


def _samples(path: Path) -> list[tuple[int, str]]:
    """Return, for each line with a sample, the number of the line and the sample as JSON text without its label.

    Raises OSError, ValueError.
    """
    samples = []
    for number, line in enumerate(path.read_text("utf-8-sig").split("\n"), start=1):
        if line.strip():
            fields = {name: value for name, value in json.loads(line).items() if name != LABEL}
            samples.append((number, json.dumps(fields, sort_keys=True, ensure_ascii=False)))
    return samples
