"""Overlap: samples that occur in the files for both calibration and validation, compared as JSON text."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from functools import cache
from itertools import islice
from pathlib import Path

from engine import digest
from engine.errors import StepError
from engine.kit.inputs import image_samples
from engine.kit.inputs.cases import LABEL
from engine.kit.inputs.image_samples import SampleImage

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
    calibration, only the first `limit` count. Image files are compared by their content. Tensors are not compared, and
    the result is empty where a file cannot be read.
    """
    ours, theirs = _file(calibrated), _file(validated)
    if ours is None or theirs is None:
        return ()
    try:
        if image_samples.are_images(ours) and image_samples.are_images(theirs):
            return tuple(_same_images(image_samples.read(ours)[:limit], image_samples.read(theirs)))
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


def _same_images(ours: Sequence[SampleImage], theirs: Sequence[SampleImage]) -> Iterator[str]:
    """Yield the names of those of our images whose content is that of another; only files of one size are read."""
    by_size: dict[int, list[Path]] = {}
    for path in (image.path for image in theirs if image.path is not None):
        by_size.setdefault(path.stat().st_size, []).append(path)
    for image in ours:
        others = by_size.get(image.path.stat().st_size) if image.path is not None else None
        if image.path is not None and others and digest.of_file(image.path) in map(digest.of_file, others):
            yield image.name


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
