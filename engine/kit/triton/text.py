"""Text: the python model that turns texts into tokens, before a model that takes tokens."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from engine import tasks
from engine.errors import StepError
from engine.kit.inputs import token_rows
from engine.kit.inputs import tokenizer as tokenizers
from engine.kit.onnx.onnx_files import Input
from engine.kit.triton import config as configs
from engine.kit.triton import parts, served
from engine.kit.triton.config import Config, Signature
from engine.kit.triton.parts import Part
from engine.kit.triton.serving import BUCKETS, Serving
from engine.runtimes.triton_tensors import TEXT
from engine.tasks import AnswerTensor, Task

OFFSETS, WINDOW_ROWS = "offsets", "window_rows"
DOC_STRIDE, ALIGN_TO_WORDS = "doc_stride", "align_to_words"
"""The options of answers that the tokenizer follows."""
TOKENIZER = "tokenizer.json"
"""The file of a tokenizer in a package."""
_INSTANCES = 2
"""The instances of a tokenizer: while Triton copies a large text for one of them, the other answers short texts.

A second one takes about 60 MB. Beside 100 MB texts of eight clients, the p95 of short requests is 2.1 x what it is
alone, and 3.1 x with one instance (tests/e2e/test_large_texts.py).
"""
_BYTES_PER_TOKEN = 64
_LEAST_BYTES = 16 * 1024
_LONGEST = 8192
"""The number of tokens from which the limit of a text follows where the model cuts no text."""
_EXTRA = {
    "input_ids": AnswerTensor("input_ids", "TYPE_INT64", (-1,)),
    "attention_mask": AnswerTensor("attention_mask", "TYPE_INT64", (-1,)),
    OFFSETS: AnswerTensor(OFFSETS, "TYPE_INT64", (-1, 2)),
    WINDOW_ROWS: AnswerTensor(WINDOW_ROWS, "TYPE_INT64", (1,)),
}
"""Outputs of the tokenizer that the postprocessing may need, even where the model does not take them as inputs."""
_HINT = "use package.triton.padding: none"
_MASK = "attention_mask"


@dataclass(frozen=True)
class ServedTokenizer:
    """A tokenizer for a package: `row` is the tokenizer's input, one or two texts, and `file` is its tokenizer.json."""

    tokenizer: tokenizers.Tokenizer
    row: AnswerTensor
    file: str
    max_bytes: int
    """The most bytes of each text of a request."""
    buckets: Sequence[int] = ()
    """The lengths to which texts are padded; empty where texts are padded to the longest of their request."""
    context: bool = False
    """Whether each row is a pair of a question and a context that contains the answer."""
    apart: bool = False
    """Whether each row has any number of texts, each with tokens of its own, beside an image."""
    options: Mapping[str, Any] = field(default_factory=dict)
    """The options of the recipe's section `package.answers` that differ from their defaults."""


def load(serving: Serving, signature: Signature, checkpoint: Path, task: str) -> ServedTokenizer | None:
    """Return the tokenizer of a model; None where the model has no tokenizer or has inputs that are not tokens."""
    definition = tasks.find(task)
    apart = definition.takes_images and definition.takes_texts
    inputs = _of_one_text(signature.inputs) if apart else signature.inputs
    if not token_rows.are_tokens(inputs):
        return None
    axis = inputs["input_ids"].shape[1]
    fixed = axis if isinstance(axis, int) else None
    tokenizer = tokenizers.load(checkpoint, longest=fixed or serving.largest.get(str(axis)))
    if tokenizer is None:
        print("the model has no tokenizer: the package takes tokens")
        return None
    row = AnswerTensor(TEXT, "TYPE_STRING", (definition.texts,))
    return ServedTokenizer(
        tokenizer,
        row,
        _file(tokenizer, fixed, definition, serving.answers.get(DOC_STRIDE, 0)),
        max_text_bytes(serving, tokenizer.longest),
        [] if apart else padded_lengths(serving, signature, tokenizer.longest),
        definition.context,
        apart,
        serving.answers,
    )


def _of_one_text(inputs: Mapping[str, Input]) -> dict[str, Input]:
    """Return those inputs that hold tokens, without their axis of a row's texts."""
    tokens = {name: inputs[name] for name in token_rows.NAMES if name in inputs}
    return {name: replace(spec, shape=(*spec.shape[:1], *spec.shape[2:])) for name, spec in tokens.items()}


def max_text_bytes(serving: Serving, longest: int | None) -> int:
    """Return the most bytes of UTF-8 that a text of a request may have.

    A tokenizer reads all of a text, at about 1 MB a second, before it cuts the text to `longest` tokens. Without a
    limit of the recipe, a text may have 64 bytes for each token that the model can take, and at least 16 KiB. A token
    of natural language has 3 to 6 bytes.
    """
    return serving.max_text_bytes or max(_BYTES_PER_TOKEN * (longest or _LONGEST), _LEAST_BYTES)


def part(name: str, model: Config, text: ServedTokenizer, *, also: Collection[str]) -> Part:
    """Return the tokenizer model, which turns texts into the inputs of `model` and the extra tensors `also`."""
    own = [tensor for tensor in parts.tensors(model.input, model) if tensor.name in token_rows.NAMES]
    names = {tensor.name for tensor in own}
    gives = [*own, *(tensor for name, tensor in _EXTRA.items() if name in also and name not in names)]
    settings = {
        "outputs": {tensor.name: configs.dtype(tensor.type) for tensor in gives},
        "offsets_of": 1 if text.context else 0,
        "max_text_bytes": text.max_bytes,
        **({"prompt": text.tokenizer.prompt} if text.tokenizer.prompt else {}),
        **({"apart": True} if text.apart else {}),
        **({"buckets": text.buckets} if text.buckets else {}),
        **({"whole_words": True} if text.options.get(ALIGN_TO_WORDS) else {}),
        **({"windows": True} if DOC_STRIDE in text.options else {}),
    }
    return parts.python(
        name, model, takes=[text.row], gives=gives, work=served.TOKENIZER, settings=settings, needs=("tokenizers",),
        files={TOKENIZER: text.file.encode("utf-8")}, instances=_INSTANCES,
    )  # fmt: skip


def _file(tokenizer: tokenizers.Tokenizer, fixed: int | None, task: Task, stride: int) -> str:
    """Return the text of tokenizer.json with the settings for truncation and padding.

    Texts are truncated as in validation, and padded to the longest text of a request or to a fixed length. Where a row
    is a question and a context that holds the answer, only the context is truncated; with `stride`, what is cut off is
    a further window that repeats the last `stride` tokens. Raises StepError for a stride that leaves no room.
    """
    backend = tokenizer.backend
    cut = backend.truncation
    if stride and (cut is None or stride >= cut["max_length"] // 2):
        raise StepError(
            f"package.answers.doc_stride: {stride} leaves no room for a question and new tokens",
            [f"the model takes {'texts of any length' if cut is None else str(cut['max_length']) + ' tokens'}"],
            "use a smaller doc_stride" if cut is not None else "leave doc_stride out: no text is cut",
        )
    if cut is not None and task.context:
        backend.enable_truncation(cut["max_length"], stride=stride, strategy="only_second", direction=cut["direction"])
    token = backend.id_to_token(tokenizer.pad) or ""
    backend.enable_padding(direction=tokenizer.side, pad_id=tokenizer.pad, pad_token=token, length=fixed)
    return str(backend.to_str(pretty=False))


def padded_lengths(serving: Serving, signature: Signature, longest: int | None) -> list[int]:
    """Return the lengths to which a package pads texts, the smallest first; an empty list where it pads none.

    The lengths are the sizes in the profiles, up to `longest`, to which texts are cut. Raises StepError where the model
    cannot take padded texts, or where no profile names a length.
    """
    if serving.padding != BUCKETS:
        return []
    axis = signature.inputs["input_ids"].shape[1]
    sizes = serving.lengths.get(str(axis), ())
    if isinstance(axis, int):
        reason = f"the model takes texts of {axis} tokens only, to which they are padded anyway"
    elif _MASK not in signature.inputs:
        reason = f"the model has no {_MASK}, so padding would change its outputs"
    elif not sizes:
        reason = f"no profile names sizes of the axis {axis}"
    else:
        return sorted({min(size, longest or size) for size in sizes})
    raise StepError(f"package.triton.padding: buckets is not possible: {reason}", hint=_HINT)


def refuse_visible_padding(serving: Serving, entry: Config) -> None:
    """Raise StepError where clients would see the padding: where an output of the entry has an axis of tokens."""
    visible = [output.name for output in entry.output if -1 in output.dims]
    if serving.padding == BUCKETS and visible:
        raise StepError(
            f"package.triton.padding: buckets is not possible: it would lengthen {' and '.join(visible)}", hint=_HINT
        )
