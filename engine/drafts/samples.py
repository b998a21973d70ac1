"""Samples that a new recipe starts with: arrays in an .npz file, texts as lines of a .jsonl file, or PNG files."""

from __future__ import annotations

import io
import json
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from engine.kit.inputs import drawn_images, random_inputs, samples
from engine.kit.onnx import onnx_files
from engine.recipe.values import Range
from engine.tasks import Task

if TYPE_CHECKING:
    import numpy as np

    from engine.recipe.values import Profile


_COUNT = 8
_LARGEST = 2**20
"""The largest number of elements in a sample's tensor: a file of samples stays small."""
_SIZES = ((240, 320), (320, 240), (256, 256), (200, 300))
"""The heights and widths of drawn pictures."""
LINES = "samples.jsonl"
"""The file that names pictures with their texts, in the folder of the pictures."""
_TEXTS = 16
_QUESTIONS = (
    ("When does the library open?", "The library opens at nine and closes at six. On Sundays it stays closed."),
    ("Who repaired the bridge?", "The old bridge was repaired by a firm from Lyon after the flood of 1957."),
    ("Where does the river begin?", "The river begins in the northern hills, and reaches the sea near the port."),
    ("What did the parcel hold?", "The parcel arrived on Monday. It held two books and a letter from her aunt."),
    ("How long is the tunnel?", "The tunnel, which is 12 kilometres long, was opened in 1998."),
    ("Why was the match stopped?", "The match was stopped after an hour because of heavy rain."),
    ("Which team won?", "The home team led until the last minute, but the guests won by one goal."),
    ("What grows on the terraces?", "On the terraces above the village, farmers grow lemons and almonds."),
)


def drawn(inputs: Mapping[str, onnx_files.Input], ranges: Mapping[str, int], profile: Profile) -> bytes | None:
    """Return whole inputs drawn at random for the optimum sizes of a profile; None where they are large."""
    import numpy as np

    samples = rows(inputs, ranges, profile)
    return _saved({name: np.stack([row[name] for row in samples]) for name in inputs}) if samples else None


def rows(
    inputs: Mapping[str, onnx_files.Input], ranges: Mapping[str, int], profile: Profile
) -> list[dict[str, np.ndarray]]:
    """Return the samples of `drawn`, each a mapping from the name of an input to its tensor."""
    fixed = {axis: Range(min=each.opt, opt=each.opt, max=each.opt) for axis, each in profile.items()}
    draws = [
        next(iter(random_inputs.tensors(inputs, ranges, [fixed] if fixed else (), seed=seed, largest=_LARGEST)), None)
        for seed in range(_COUNT)
    ]
    return [each for each in draws if each is not None]


def images(task: Task | None = None) -> dict[str, bytes]:
    """Return drawn pictures of several sizes by the name of their file; for a task with texts, also lines for both."""
    files = {
        f"{number}.png": drawn_images.png(height, width, seed=number)
        for number, (height, width) in enumerate(_SIZES * (_COUNT // len(_SIZES)), start=1)
    }
    if task is not None and task.takes_texts:
        rows = [{"image": name, "texts": list(task.example)} for name in files]
        files[LINES] = "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows).encode()
    return files


def tokens(names: Sequence[str], vocabulary: int, length: int) -> bytes:
    """Return random token ids for a model without a tokenizer, with masks of ones and token types of zeros."""
    import numpy as np

    generator, shape = np.random.default_rng(0), (_COUNT, length)
    arrays = {name: np.zeros(shape, np.int64) for name in names}
    arrays["input_ids"] = generator.integers(0, vocabulary, shape)
    if "attention_mask" in arrays:
        arrays["attention_mask"] = np.ones(shape, np.int64)
    return _saved(arrays)


def _saved(arrays: Mapping[str, np.ndarray]) -> bytes:
    import numpy as np

    file = io.BytesIO()
    np.savez_compressed(file, **dict(arrays))  # type: ignore[arg-type]
    return file.getvalue()


def texts(task: Task) -> bytes:
    """Return samples for a task, one JSON object a line."""
    rows: list[dict[str, str]]
    if task.context:
        rows = [{"question": question, "context": context} for question, context in _QUESTIONS]
    else:
        rows = [{"text": each.text} for each in samples.built_in()[:_TEXTS]]
    return "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows).encode()
