"""Samples: a .jsonl file of texts or an .npz file of tensors becomes a model's inputs, by the model's own tokenizer."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from engine.errors import StepError
from engine.kit.checkpoints import labels
from engine.kit.inputs import tensor_samples, token_rows
from engine.kit.inputs import tokenizer as tokenizers
from engine.kit.inputs.cases import LABEL, Case
from engine.kit.inputs.token_rows import Row, RowLimits
from engine.kit.onnx.onnx_files import Input
from engine.text.display import has_surrogates

if TYPE_CHECKING:
    from engine.kit.inputs.tokenizer import Tokenizer

data = ("texts.txt",)
_FORMS = 'each line is {"text"}, {"text", "pair"} or {"question", "context"}, optionally with "label"'
_FIELDS = frozenset({"text", "pair", "question", "context", LABEL})


@dataclass(frozen=True)
class SampleText:
    """One line of a samples file: a text or a pair of texts, and the expected class by its number or name."""

    name: str
    text: str
    pair: str | None = None
    label: int | str | None = None


def read(path: Path, checkpoint: Path, specs: Mapping[str, Input], *, longest: int | None = None) -> list[Case]:
    """Return a case without outputs for each sample of a file, for a model whose inputs are `specs`.

    A `.jsonl` file holds texts (`texts`), which are cut to `longest` tokens; an `.npz` file holds tensors.
    Raises StepError where the file of samples cannot be read or does not suit the model.
    """
    if path.suffix == ".npz":
        return tensor_samples.read(path, specs)
    if path.suffix != ".jsonl":
        raise StepError(
            f"samples come as .jsonl or .npz, and {path.name} is neither", [_FORMS, "an .npz has one array per input"]
        )
    return tokenize(texts(path), checkpoint, specs, longest=longest)


def is_readable(path: Path) -> bool:
    """Whether a file of samples can be read; the images that it names are read later."""
    try:
        if path.suffix == ".npz":
            tensor_samples.headers(path)
        else:
            every = [fields_of(path, *line) for line in lines(path)]
            return "image" in every[0] or bool(texts(path))
    except (StepError, OSError):
        return False
    return True


def built_in(*, paired: bool = False) -> list[SampleText]:
    """Return the texts that come with this project, for a model without samples.

    With `paired`, each sample has two texts.
    """
    path = Path(__file__).with_name(data[0])
    lines = [line for line in path.read_text("utf-8").splitlines() if line]
    return [
        SampleText(f"built-in {number}", line, lines[number % len(lines)] if paired else None)
        for number, line in enumerate(lines, 1)
    ]


def texts(path: Path, *, most_bytes: int | None = None) -> list[SampleText]:
    """Return the samples in a `.jsonl` file, one for each line that is not empty.

    With `most_bytes`, only the lines within the first `most_bytes` bytes are read. Raises StepError, with the line's
    number, where a line of the file has no text.
    """
    return [_text(path, number, line) for number, line in lines(path, most_bytes=most_bytes)]


def lines(path: Path, *, most_bytes: int | None = None) -> list[tuple[int, str]]:
    """Return the lines of a `.jsonl` file that are not empty, with their numbers. Raises StepError for none."""
    try:
        every = _content(path, most_bytes).decode("utf-8-sig").split("\n")  # JSON allows U+2028: not splitlines()
    except UnicodeDecodeError as error:
        raise StepError(f"{path.name} is no UTF-8 text", [str(error)]) from error
    filled = [(number, line) for number, line in enumerate(every, 1) if line.strip()]
    if not filled:
        raise StepError(f"{path.name} holds no samples", hint=_FORMS)
    return filled


def fields_of(path: Path, number: int, line: str) -> dict[str, Any]:
    """Return the fields of a line of a `.jsonl` file. Raises StepError."""
    where = f"{path.name}:{number}"
    try:
        fields = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise StepError(f"{where} is no JSON", [str(error), line[:80]], _FORMS) from error
    if not isinstance(fields, dict):
        raise StepError(f"{where} is no JSON object", [line[:80]], _FORMS)
    return fields


def _content(path: Path, most_bytes: int | None) -> bytes:
    """Return the bytes of a file; with `most_bytes`, of a longer file only the whole lines at its start."""
    with path.open("rb") as file:
        content = file.read() if most_bytes is None else file.read(most_bytes)
        is_whole = not file.read(1)
    return content if is_whole else content[: content.rfind(b"\n") + 1]


def tokenize(
    texts: list[SampleText], checkpoint: Path, specs: Mapping[str, Input], *, longest: int | None = None
) -> list[Case]:
    """Return a case for each text; the texts are cut to `longest` tokens.

    Raises StepError where the model takes no tokens or has no tokenizer.
    """
    tokenizer, limits = tokenizer_for(checkpoint, specs, longest)
    classes = labels.numbers(checkpoint)
    cases = []
    for text in texts:
        row = token_rows.alone(row_of(text, tokenizer), pad=tokenizer.pad, limits=limits)
        shown = text.text if text.pair is None else f"{text.text} | {text.pair}"
        cases.append(Case(text.name, shown, "sample", token_rows.fit(row, specs), {}, label_of(text, classes)))
    return cases


def tokenizer_for(
    checkpoint: Path, specs: Mapping[str, Input], longest: int | None = None
) -> tuple[Tokenizer, RowLimits]:
    """Return the tokenizer of a model, which cuts texts to `longest` tokens and to the model's limits, and the limits.

    Raises StepError where the model takes no tokens or has no tokenizer.
    """
    refuse_no_tokens(specs)
    limits = RowLimits.of(specs, longest)
    tokenizer = tokenizers.load(checkpoint, longest=limits.sequence[1])
    if tokenizer is None:
        raise no_tokenizer()
    return tokenizer, limits


def row_of(text: SampleText, tokenizer: Tokenizer) -> Row:
    """Return a sample as a row of tokens. Raises StepError for a sample of which the tokenizer makes no token."""
    row = tokenizer.row(text.text, text.pair)
    if row["input_ids"].size == 0:
        raise StepError(
            f"the tokenizer makes no token of {text.name}", [repr(text.text)], "leave it out of the samples"
        )
    return row


def refuse_no_tokens(specs: Mapping[str, Input]) -> None:
    """Raise StepError for samples of texts if the model takes no tokens."""
    if not token_rows.are_tokens(specs):
        raise StepError(
            "the samples are texts, but the model takes no tokens",
            [f"it takes {tensor_samples.describe(spec)}" for spec in specs.values()],
            "give samples as .npz with one array per input",
        )


def no_tokenizer() -> StepError:
    """Return the error for samples of texts if the model has no tokenizer."""
    return StepError(
        "the samples are texts, but the model has no tokenizer",
        hint="give tokenizer: beside source, or samples as .npz",
    )


def _text(path: Path, number: int, line: str) -> SampleText:
    """Return the sample in a line of a `.jsonl` file. Raises StepError."""
    where, fields = f"{path.name}:{number}", fields_of(path, number, line)
    if "image" in fields:
        raise StepError(f"{where} names an image, and the model takes texts", hint=_FORMS)
    unknown = sorted(set(fields) - _FIELDS)
    first, second = ("question", "context") if "question" in fields else ("text", "pair")
    default = "" if second == "pair" else None  # a line may lack a pair, but no context
    if unknown or not isinstance(fields.get(first), str) or not isinstance(fields.get(second, default), str):
        facts = [f"unknown: {', '.join(unknown)}"] if unknown else [f"it has: {', '.join(fields) or 'nothing'}"]
        raise StepError(f"{where} has no usable text", [*facts, line[:80]], _FORMS)
    if any(has_surrogates(fields.get(field) or "") for field in (first, second)):
        raise StepError(f"{where} holds half a character: a lone surrogate such as \\ud800", [line[:80]])
    label = fields.get(LABEL)
    if isinstance(label, bool) or not isinstance(label, int | str | None):
        raise StepError(f"{where} has a label that is neither a number nor a name", [repr(label)])
    return SampleText(f"line {number}", fields[first], fields.get(second), label)


def label_of(text: SampleText, classes: Mapping[str, int]) -> int | None:
    """Return the number of a sample's class; None without a label. Raises StepError for a name that no class has."""
    if not isinstance(text.label, str):
        return text.label
    if text.label in classes:
        return int(classes[text.label])
    raise StepError(
        f"the label {text.label!r} of {text.name} is none of the model's classes",
        [f"the classes by its config.json: {', '.join(classes) or 'none'}"],
        "give labels by their numbers",
    )
