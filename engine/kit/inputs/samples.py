"""Samples: a .jsonl of texts or an .npz of tensors -> a model's inputs, tokenized as the model's own tokenizer does."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from engine.errors import StepError
from engine.kit.checkpoints import checkpoint as checkpoints
from engine.kit.inputs import tensor_samples, token_rows
from engine.kit.inputs import tokenizer as tokenizers
from engine.kit.inputs.cases import Case
from engine.kit.inputs.token_rows import RowLimits
from engine.kit.onnx.onnx_files import Input

if TYPE_CHECKING:
    from engine.kit.inputs.tokenizer import Tokenizer

LABEL = "label"
_DEFAULT_LABELS = 2
data = ("texts.txt",)
_FORMS = 'each line is {"text"}, {"text", "pair"} or {"question", "context"}, optionally with "label"'
_FIELDS = frozenset({"text", "pair", "question", "context", LABEL})


@dataclass(frozen=True)
class SampleText:
    """One line of a samples file: a text or a pair of texts, and the expected class, by number or name."""

    name: str
    text: str
    pair: str | None = None
    label: int | str | None = None


def read(path: Path, checkpoint: Path, wanted: Mapping[str, Input], *, longest: int | None = None) -> list[Case]:
    """Return a case per sample, still without outputs, for a model that takes `wanted`.

    A `.jsonl` file holds texts (see `texts`), cut to `longest` tokens, an `.npz` file tensors (`tensor_samples.read`).
    Raises StepError for a file that cannot be read or does not suit the model.
    """
    if path.suffix == ".npz":
        return tensor_samples.read(path, wanted)
    if path.suffix != ".jsonl":
        raise StepError(
            f"samples come as .jsonl or .npz, and {path.name} is neither", [_FORMS, "an .npz has one array per input"]
        )
    return tokenize(texts(path), checkpoint, wanted, longest=longest)


def built_in(*, paired: bool = False) -> list[SampleText]:
    """Return texts of our own, for a text model that comes without samples; pairs where the task is about pairs."""
    path = Path(__file__).with_name(data[0])
    lines = [line for line in path.read_text("utf-8").splitlines() if line]
    return [
        SampleText(f"built-in {number}", line, lines[number % len(lines)] if paired else None)
        for number, line in enumerate(lines, 1)
    ]


def texts(path: Path) -> list[SampleText]:
    """Return the texts of a `.jsonl` file. Raises StepError, with the line's number, for a line that is none."""
    try:
        lines = path.read_text("utf-8-sig").split("\n")  # not splitlines(): JSON allows U+2028 within a string
    except UnicodeDecodeError as error:
        raise StepError(f"{path.name} is no UTF-8 text", [str(error)]) from error
    found = [_text(path, number, line) for number, line in enumerate(lines, 1) if line.strip()]
    if not found:
        raise StepError(f"{path.name} holds no samples", hint=_FORMS)
    return found


def tokenize(
    found: list[SampleText], checkpoint: Path, wanted: Mapping[str, Input], *, longest: int | None = None
) -> list[Case]:
    """Return the texts as cases, of `longest` tokens at most.

    Raises StepError where the model takes no tokens or has no tokenizer.
    """
    if not token_rows.are_tokens(wanted):
        raise StepError(
            "the samples are texts, but the model takes no tokens",
            [f"it takes {tensor_samples.describe(value)}" for value in wanted.values()],
            "give samples as .npz with one array per input",
        )
    limits = RowLimits.of(wanted, longest)
    tokenizer = tokenizers.load(checkpoint, longest=limits.sequence[1])
    if tokenizer is None:
        raise StepError(
            "the samples are texts, but the model has no tokenizer",
            hint="give tokenizer: beside source, or samples as .npz",
        )
    classes = _classes(checkpoints.config(checkpoint))
    return [_case(text, tokenizer, limits, wanted, classes) for text in found]


def _text(path: Path, number: int, line: str) -> SampleText:
    where = f"line {number} of {path.name}"
    try:
        said = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise StepError(f"{where} is no JSON", [str(error), line[:80]], _FORMS) from error
    if not isinstance(said, dict):
        raise StepError(f"{where} is no JSON object", [line[:80]], _FORMS)
    if "image" in said:
        raise StepError(f"{where} names an image: that is not supported yet", hint="give samples as .npz")
    unknown = sorted(set(said) - _FIELDS)
    first, second = ("question", "context") if "question" in said else ("text", "pair")
    fields = [said.get(first), said.get(second, "" if first == "text" else None)]
    if unknown or not all(isinstance(field, str) for field in fields):
        facts = [f"unknown: {', '.join(unknown)}"] if unknown else [f"it has: {', '.join(said) or 'nothing'}"]
        raise StepError(f"{where} has no usable text", [*facts, line[:80]], _FORMS)
    if any(not _is_unicode(said.get(field)) for field in (first, second)):
        raise StepError(f"{where} holds half a character: a lone surrogate such as \\ud800", [line[:80]])
    label = said.get(LABEL)
    if isinstance(label, bool) or not isinstance(label, int | str | None):
        raise StepError(f"{where} has a label that is neither a number nor a name", [repr(label)])
    return SampleText(f"line {number}", said[first], said.get(second), label)


def _case(
    text: SampleText,
    tokenizer: Tokenizer,
    limits: RowLimits,
    wanted: Mapping[str, Input],
    classes: Mapping[str, int],
) -> Case:
    row = tokenizer.row(text.text, text.pair)
    if row["input_ids"].size == 0:
        raise StepError(
            f"the tokenizer makes no token of {text.name}", [repr(text.text)], "leave it out of the samples"
        )
    inputs = token_rows.fit(token_rows.alone(row, pad=tokenizer.pad, limits=limits), wanted)
    shown = text.text if text.pair is None else f"{text.text} | {text.pair}"
    return Case(text.name, shown, "sample", inputs, {}, _label(text, classes))


def _is_unicode(text: str | None) -> bool:
    return text is None or not any("\ud800" <= letter <= "\udfff" for letter in text)


def _classes(config: Mapping[str, Any]) -> dict[str, int]:
    """Return the classes that config.json names, or those that transformers gives a model that names none.

    transformers writes no `label2id` where it is the default: LABEL_0, LABEL_1 (PreTrainedConfig.num_labels is 2).
    """
    names, numbers = config.get("label2id"), config.get("id2label")
    if isinstance(names, dict) and names:
        return {name: number for name, number in names.items() if isinstance(number, int)}
    if isinstance(numbers, dict) and numbers:
        return {str(name): int(number) for number, name in numbers.items() if str(number).isdecimal()}
    count = config.get("num_labels", _DEFAULT_LABELS if config else 0)
    return {f"LABEL_{number}": number for number in range(count if isinstance(count, int) else 0)}


def _label(text: SampleText, classes: Mapping[str, int]) -> int | None:
    if not isinstance(text.label, str):
        return text.label
    if text.label in classes:
        return int(classes[text.label])
    raise StepError(
        f"the label {text.label!r} of {text.name} is none of the model's classes",
        [f"the classes by its config.json: {', '.join(classes) or 'none'}"],
        "give labels by their numbers",
    )
