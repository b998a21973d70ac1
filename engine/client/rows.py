"""Rows: what a user asks about, from the command line, files and stdin: texts, pairs, images, tensors."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from engine.errors import UsageError

if TYPE_CHECKING:
    import numpy as np

STDIN = "-"
IMAGES = (".png", ".jpg", ".jpeg", ".webp", ".bmp", ".gif", ".tif", ".tiff")
_FORMS = 'each line is {"text"}, {"text", "pair"}, {"question", "context"} or {"image"}, optionally with "label"'
_FIELDS = ({"text"}, {"text", "pair"}, {"question", "context"}, {"image"})
_FILES = f"a file is .jsonl, .txt, .npz or an image ({', '.join(IMAGES)})"


@dataclass(frozen=True)
class Row:
    """A text, two texts that belong together, or the bytes of an image file."""

    texts: tuple[str, ...] = ()
    image: bytes | None = None
    label: str = ""
    """How the row is shown to people."""

    @property
    def kind(self) -> tuple[bool, int]:
        """What must be alike in one request."""
        return self.image is not None, len(self.texts)


@dataclass(frozen=True)
class Said:
    """All that is asked: rows, and tensors by the name of their input."""

    rows: tuple[Row, ...] = ()
    arrays: Mapping[str, np.ndarray] = field(default_factory=dict)
    plain: Mapping[str, Any] = field(default_factory=dict)
    """Input -> a value as JSON has it, whose datatype the model knows."""


def collect(
    *,
    texts: Sequence[str] = (),
    pairs: Sequence[str] = (),
    files: Sequence[str] = (),
    images: Sequence[str] = (),
    inputs: Sequence[str] = (),
) -> Said:
    """Return what the options say, in their order. Raises UsageError for what cannot be read or says nothing."""
    rows = _texts(texts, pairs)
    rows += [_image(Path(image)) for image in images]
    arrays: dict[str, np.ndarray] = {}
    for name in files:
        if Path(name).suffix.lower() == ".npz":
            arrays |= _tensors(Path(name))
        else:
            rows += _file(name)
    plain = dict(_input(said) for said in inputs)
    if not rows and not arrays and not plain:
        raise UsageError(
            "there is nothing to ask about", hint="give --text, --file, --image or --input; see recipe query --help"
        )
    return Said(tuple(rows), arrays, plain)


def _texts(texts: Sequence[str], pairs: Sequence[str]) -> list[Row]:
    if pairs and len(pairs) != len(texts):
        raise UsageError(
            f"{len(texts)} --text and {len(pairs)} --pair do not go together", hint="give each text its pair, in order"
        )
    said = [sys.stdin.read().rstrip("\n") if text == STDIN else text for text in texts]
    return [_row(*each) for each in (zip(said, pairs, strict=True) if pairs else zip(said, strict=True))]


def _row(*texts: str) -> Row:
    if any("\ud800" <= letter <= "\udfff" for text in texts for letter in text):
        raise UsageError("a text is no UTF-8", [repr(" | ".join(texts))[:200]])
    return Row(tuple(texts), label=" | ".join(texts))


def _image(path: Path) -> Row:
    return Row(image=_bytes(path), label=str(path))


def _file(name: str) -> list[Row]:
    path = Path(name)
    kind = path.suffix.lower()
    if kind in IMAGES:
        return [_image(path)]
    if name != STDIN and kind not in (".jsonl", ".txt"):
        raise UsageError(f"{name} is of no kind that is known here", hint=_FILES)
    content = sys.stdin.buffer.read() if name == STDIN else _bytes(path)
    shown = "stdin" if name == STDIN else name
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise UsageError(f"{shown} is no UTF-8 text", [str(error)]) from error
    samples = kind == ".jsonl" or (name == STDIN and text.lstrip().startswith("{"))
    rows = list(_samples(text, shown, path.parent) if samples else _lines(text))
    if not rows:
        raise UsageError(f"{shown} holds nothing to ask about", hint=_FORMS if samples else "each line is a text")
    return rows


def _lines(text: str) -> Iterator[Row]:
    return (_row(line.rstrip("\r")) for line in text.split("\n") if line.strip())


def _samples(text: str, name: str, folder: Path) -> Iterator[Row]:
    for number, line in enumerate(text.split("\n"), 1):  # not splitlines(): JSON allows U+2028 within a string
        if not line.strip():
            continue
        where = f"line {number} of {name}"
        try:
            said = json.loads(line)
        except (ValueError, RecursionError) as error:
            raise UsageError(f"{where} is no JSON", [str(error), line[:80]], _FORMS) from error
        fields = set(said) - {"label"} if isinstance(said, dict) else set()
        if fields not in _FIELDS or not all(isinstance(said[each], str) for each in fields):
            raise UsageError(f"{where} is no sample", [line[:80]], _FORMS)
        if "image" in fields:
            yield _image(folder / said["image"])
        else:
            names = ("question", "context") if "question" in fields else ("text", "pair")
            yield _row(*(said[each] for each in names if each in fields))


def _input(said: str) -> tuple[str, Any]:
    name, equals, value = said.partition("=")
    if not equals or not name:
        raise UsageError(f"--input {said[:80]!r} is not NAME=JSON", hint="--input 'x=[[0.5, 1.5]]'")
    try:
        return name, json.loads(value)
    except (ValueError, RecursionError) as error:
        raise UsageError(
            f"the value of --input {name} is no JSON",
            [str(error), value[:80]],
            "a text needs quotes of its own: 'NAME=\"text\"'",
        ) from error


def _tensors(path: Path) -> dict[str, np.ndarray]:
    import numpy as np

    _bytes(path)  # a file that is not there says so in the same words as any other
    try:
        with np.load(path, allow_pickle=False) as found:
            return {name: found[name] for name in found.files}
    except Exception as error:
        raise UsageError(f"{path} cannot be read as an .npz of tensors", [str(error)]) from error


def _bytes(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise UsageError(f"{path} cannot be read", [error.strerror or str(error)]) from error
