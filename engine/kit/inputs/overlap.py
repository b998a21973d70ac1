"""Overlap: samples that occur in the files for both calibration and validation, compared as JSON text."""

from __future__ import annotations

import json
from collections.abc import Collection, Sequence
from functools import cache
from itertools import islice
from pathlib import Path

from engine import digest
from engine.errors import StepError
from engine.kit.inputs import image_samples
from engine.kit.inputs.cases import LABEL

_LARGEST = 64 << 20
"""The largest size in bytes of a file of samples that `recipe check` reads.

Where a file is larger, only the step `validate-onnx` finds samples that occur in both calibration and validation.
"""


LISTED = 5
"""The number of samples that an error lists."""
HINT = "a model that is validated on what it was calibrated on looks better than it is: keep them apart"
"""The hint of an error for samples in both files."""


def refuse(both: Sequence[str]) -> None:
    """Raise StepError if samples are in both files."""
    if both:
        what = f"{len(both)} of the samples in calibrate.samples are also in validate.samples"
        raise StepError(what, both[:LISTED], HINT)


def images(path: Path, limit: int | None, known: Collection[str | None]) -> list[str]:
    """Return the names of those of the first `limit` images whose files have one of the known digests."""
    every = image_samples.read(path)[:limit]
    return [image.name for image in every if image.path is not None and digest.of_file(image.path) in known]


@cache
def shared(calibrated: str, validated: str, limit: int) -> tuple[str, ...]:
    """Return the samples for calibration that are also in the file for validation, even if their labels differ.

    `calibrated` and `validated` are the URIs of two files of samples, "file:..." or "python:...". Of the samples for
    calibration, only the first `limit` count. Image files are compared by their content. Tensors are not compared, and
    the result is empty where a file cannot be read.
    """
    ours, theirs = _file(calibrated), _file(validated)
    if ours is None or theirs is None:
        return ()
    try:
        if image_samples.are_images(ours) and image_samples.are_images(theirs):
            paths = (image.path for image in image_samples.read(theirs) if image.path is not None)
            return tuple(images(ours, limit, set(map(digest.of_file, paths))))
        validation = {sample for _, sample in _samples(theirs)}
        calibration = islice(_samples(ours), limit)
        return tuple(f"line {number}: {sample}" for number, sample in calibration if sample in validation)
    except (OSError, ValueError, StepError):
        return ()  # the steps that read these files report such errors


def _file(uri: str) -> Path | None:
    path = Path(uri.removeprefix("file:"))
    if not uri.startswith("file:") or not path.exists() or path.suffix == ".npz":
        return None
    return path if path.is_dir() or path.stat().st_size <= _LARGEST else None


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
