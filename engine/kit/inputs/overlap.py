"""Overlap: samples that a model would be both calibrated and validated on, found by reading text alone."""

from __future__ import annotations

import json
from functools import cache
from itertools import islice
from pathlib import Path

_LARGEST = 64 << 20
"""Bytes of a file that is still looked through while a recipe is read; of larger ones `validate-onnx` tells later."""
_LABELS = ("label",)


@cache
def shared(calibrated: str, validated: str, limit: int) -> tuple[str, ...]:
    """Return the samples of two files, by their places "file:..." or "python:...", that are the same but for labels.

    Of those to calibrate on the first `limit` count. Looks at `.jsonl` files only; what cannot be read has none.
    """
    ours, theirs = _file(calibrated), _file(validated)
    if ours is None or theirs is None:
        return ()
    try:
        known = {sample for _, sample in _samples(theirs)}
        return tuple(f"line {number}: {sample}" for number, sample in islice(_samples(ours), limit) if sample in known)
    except (OSError, ValueError):
        return ()  # the steps that read them have more to say


def _file(uri: str) -> Path | None:
    path = Path(uri.removeprefix("file:"))
    is_small_text = uri.startswith("file:") and path.suffix == ".jsonl" and path.is_file()
    return path if is_small_text and path.stat().st_size <= _LARGEST else None


def _samples(path: Path) -> list[tuple[int, str]]:
    """Return the samples by line, each as JSON without its label. Raises OSError, ValueError."""
    found = []
    for number, line in enumerate(path.read_text("utf-8-sig").split("\n"), start=1):
        if line.strip():
            said = json.loads(line)
            kept = {name: value for name, value in said.items() if name not in _LABELS}
            found.append((number, json.dumps(kept, sort_keys=True, ensure_ascii=False)))
    return found
