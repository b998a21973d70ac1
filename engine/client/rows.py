"""Rows: the user's input from the command line, files and stdin: texts, pairs, images and tensors."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from engine.errors import UsageError
from engine.text import image_names
from engine.text.display import has_surrogates

if TYPE_CHECKING:
    import numpy as np

STDIN = "-"
_FORMS = (
    'each line is {"text"}, {"text", "pair"}, {"question", "context"}, {"image"} or {"image", "texts": [...]}, '
    'optionally with "label"'
)
_FIELDS = ({"text"}, {"text", "pair"}, {"question", "context"}, {"image"}, {"image", "texts"})
_FILES = f"a file is .jsonl, .txt, .npz or an image ({', '.join(image_names.SUFFIXES)})"
_SHOWN = 80
"""The largest number of characters of a line that an error shows."""
_SHOWN_TEXT = 200
"""The largest number of characters of a text that an error shows."""


@dataclass(frozen=True)
class QueryRow:
    """One row of the user's input: a text, two texts that belong together, or the bytes of an image file.

    Beside an image, any number of texts may stand, of which a model tells how well each describes the image.
    """

    texts: tuple[str, ...] = ()
    image: bytes | None = None
    label: str = ""
    """The text or path that shows people which row an answer belongs to."""

    @property
    def kind(self) -> tuple[bool, int]:
        """Whether the row is an image, and its number of texts; all rows of one request are of one kind."""
        return self.image is not None, len(self.texts)


@dataclass(frozen=True)
class QueryInput:
    """The whole input of a query: rows, and tensors by the name of the model's input."""

    rows: tuple[QueryRow, ...] = ()
    arrays: Mapping[str, np.ndarray] = field(default_factory=dict)
    json_values: Mapping[str, Any] = field(default_factory=dict)
    """Tensors as values of JSON. The datatypes of the tensors come from the model's metadata."""


def collect(
    *,
    texts: Sequence[str] = (),
    pairs: Sequence[str] = (),
    files: Sequence[str] = (),
    images: Sequence[str] = (),
    inputs: Sequence[str] = (),
) -> QueryInput:
    """Return rows of texts or images, then of files, and tensors; with images, all texts go with each of them.

    Raises UsageError for wrong ones.
    """
    rows = _texts(texts, pairs)
    if images and pairs:
        raise UsageError("--pair and --image do not go together", hint="give an image several --text")
    if images:
        beside = tuple(text for row in rows for text in row.texts)
        rows = [_image(Path(image), beside) for image in images]
    arrays: dict[str, np.ndarray] = {}
    for name in files:
        if Path(name).suffix.lower() == ".npz":
            arrays |= _tensors(Path(name))
        else:
            rows += _file(name)
    json_values = dict(_json_value(option) for option in inputs)
    if not rows and not arrays and not json_values:
        raise UsageError("there is no input", hint="give --text, --file, --image or --input; see recipe query --help")
    return QueryInput(tuple(rows), arrays, json_values)


def _texts(options: Sequence[str], pairs: Sequence[str]) -> list[QueryRow]:
    if pairs and len(pairs) != len(options):
        raise UsageError(
            f"{len(options)} --text and {len(pairs)} --pair do not go together",
            hint="give one --pair for each --text, in the same order",
        )
    texts = [sys.stdin.read().rstrip("\n") if option == STDIN else option for option in options]
    if pairs:
        return [_row(text, pair) for text, pair in zip(texts, pairs, strict=True)]
    return [_row(text) for text in texts]


def _row(*texts: str) -> QueryRow:
    if any(map(has_surrogates, texts)):
        raise UsageError("a text is not valid UTF-8", [repr(" | ".join(texts))[:_SHOWN_TEXT]])
    return QueryRow(tuple(texts), label=" | ".join(texts))


def _image(path: Path, texts: Sequence[str] = ()) -> QueryRow:
    return replace(_row(*texts), image=_bytes(path), label=str(path))


def _file(name: str) -> list[QueryRow]:
    """Return the rows of a file or of standard input: one row for an image, else a row for each sample or line."""
    path = Path(name)
    suffix = path.suffix.lower()
    if suffix in image_names.SUFFIXES:
        return [_image(path)]
    if name != STDIN and suffix not in (".jsonl", ".txt"):
        raise UsageError(f"{name} is of an unknown kind", hint=_FILES)
    content = sys.stdin.buffer.read() if name == STDIN else _bytes(path)
    shown = "stdin" if name == STDIN else name
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise UsageError(f"{shown} is no UTF-8 text", [str(error)]) from error
    has_samples = suffix == ".jsonl" or (name == STDIN and text.lstrip().startswith("{"))
    lines = (line.rstrip("\r") for line in text.split("\n") if line.strip())
    rows = list(_samples(text, shown, path.parent) if has_samples else map(_row, lines))
    if not rows:
        hint = _FORMS if has_samples else "each line is a text"
        raise UsageError(f"{shown} holds no input", hint=hint)
    return rows


def _samples(text: str, name: str, folder: Path) -> Iterator[QueryRow]:
    """Yield the samples of a .jsonl file, in the form that recipes use; paths of images are relative to `folder`."""
    for number, line in enumerate(text.split("\n"), 1):  # not splitlines(): JSON allows U+2028 within a string
        if not line.strip():
            continue
        where = f"{name}:{number}"
        try:
            sample = json.loads(line)
        except (ValueError, RecursionError) as error:
            raise UsageError(f"{where} is no JSON", [str(error), line[:_SHOWN]], _FORMS) from error
        fields = set(sample) - {"label"} if isinstance(sample, dict) else set()
        texts = sample["texts"] if "texts" in fields else []
        values = [*(sample[each] for each in fields - {"texts"}), *(texts if isinstance(texts, list) else [None])]
        if fields not in _FIELDS or not all(isinstance(value, str) for value in values):
            raise UsageError(f"{where} is no sample", [line[:_SHOWN]], _FORMS)
        if "image" in fields:
            yield _image(folder / sample["image"], texts)
        else:
            names = ("question", "context") if "question" in fields else ("text", "pair")
            yield _row(*(sample[each] for each in names if each in fields))


def _json_value(option: str) -> tuple[str, Any]:
    name, equals, value = option.partition("=")
    if not equals or not name:
        raise UsageError(f"--input {option[:_SHOWN]!r} is not NAME=JSON", hint="--input 'x=[[0.5, 1.5]]'")
    try:
        return name, json.loads(value)
    except (ValueError, RecursionError) as error:
        raise UsageError(
            f"the value of --input {name} is no JSON",
            [str(error), value[:_SHOWN]],
            "a text needs quotes of its own: 'NAME=\"text\"'",
        ) from error


def _tensors(path: Path) -> dict[str, np.ndarray]:
    import numpy as np

    _bytes(path)  # a missing file gets the same error text as any other file
    try:
        with np.load(path, allow_pickle=False) as archive:
            return {name: archive[name] for name in archive.files}
    except Exception as error:
        raise UsageError(f"{path} cannot be read as an .npz of tensors", [str(error)]) from error


def _bytes(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise UsageError(f"{path} cannot be read", [error.strerror or str(error)]) from error
