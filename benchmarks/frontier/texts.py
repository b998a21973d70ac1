"""Texts: sentences from the documentation of installed Python packages, unseen by every model."""

from __future__ import annotations

import ast
import importlib.metadata
import json
import random
import re
from collections.abc import Iterable, Iterator
from importlib.metadata import Distribution
from pathlib import Path

SEED = 15
CALIBRATION = 300
"""Sentences for the peers that calibrate: NNCF's default number."""
BUILT_IN = Path(__file__).resolve().parents[2] / "engine" / "kit" / "inputs" / "texts.txt"
_PER_FILE = 4
_PER_PACKAGE = 40
_SUFFIXES = frozenset({".md", ".rst", ".txt", ".py"})
_LARGEST = 500_000
"""Bytes; larger files are mostly tables."""
_WORDS = range(4, 61)
_SENTENCE = re.compile(r"(?<=[.!?])\s+(?=[A-Z])")
_PROSE = re.compile(r"[A-Z][\w ,;:'()\"/.-]+[.!?]")
"""A sentence without signs of code or markup."""
_LETTERS = 0.7


def held_out(folder: Path, count: int, samples: Path) -> tuple[list[str], Path]:
    """Return sentences that no recipe uses, and a file in `folder` with others on which peers calibrate."""
    file, calibration = folder / f"texts-{count}.json", folder / "calibration.json"
    if not file.is_file():
        used = [*of_samples(samples), *BUILT_IN.read_text("utf-8").splitlines()]
        file.write_text(json.dumps(draw(count + CALIBRATION, used), ensure_ascii=False))
    sentences = json.loads(file.read_text())
    calibration.write_text(json.dumps(sentences[-CALIBRATION:]))
    return sentences[:count], calibration


def draw(count: int, used: Iterable[str], *, seed: int = SEED) -> list[str]:
    """Return distinct sentences in a random order that `seed` fixes, none of which is in `used`.

    The sentences come from README files, other documents and docstrings; at most 40 from each package. The same
    packages give the same sentences. Raises ValueError if the installed packages have too few.
    """
    taken = {_plain(text) for text in used}
    sentences: list[str] = []
    for path, package in _files(random.Random(seed)):
        if package[0] >= _PER_PACKAGE:
            continue
        fresh = [each for each in _sentences(path) if _plain(each) not in taken]
        for sentence in fresh[:_PER_FILE]:
            if _plain(sentence) not in taken:
                taken.add(_plain(sentence))
                sentences.append(sentence)
                package[0] += 1
        if len(sentences) >= count:
            return sentences[:count]
    raise ValueError(f"the installed packages have {len(sentences)} sentences, and {count} are needed")


def of_samples(folder: Path) -> list[str]:
    """Return the sentences of all sample files of recipes (JSON lines with `text`) in a folder."""
    lines = [line for path in sorted(folder.glob("*.jsonl")) for line in path.read_text("utf-8").splitlines()]
    return [part for line in lines for part in _each(json.loads(line)["text"])]


def _each(text: str) -> list[str]:
    return [text, *_SENTENCE.split(text)]


def _plain(text: str) -> str:
    """Return the letters of a text: two texts that differ only in signs, spaces or capitals are one."""
    return "".join(filter(str.isalnum, text.lower()))


def _files(generator: random.Random) -> Iterator[tuple[Path, list[int]]]:
    """Yield the documents and modules of all packages in random order, each with its package's count of sentences."""
    packages = sorted(importlib.metadata.distributions(), key=lambda each: each.metadata["Name"].lower())
    files = []
    for package in packages:
        count = [0]
        files += [(path, count) for path in _documents(package)]
    generator.shuffle(files)
    yield from files


def _documents(package: Distribution) -> list[Path]:
    paths = (Path(str(package.locate_file(file))) for file in package.files or () if file.suffix in _SUFFIXES)
    return sorted(path for path in paths if path.is_file() and path.stat().st_size <= _LARGEST)


def _sentences(path: Path) -> Iterator[str]:
    try:
        text = path.read_text("utf-8")
        blocks = _docstrings(text) if path.suffix == ".py" else [text]
    except (UnicodeDecodeError, SyntaxError, ValueError, RecursionError):
        return
    for block in blocks:
        for paragraph in re.split(r"\n\s*\n", block):
            for sentence in _SENTENCE.split(" ".join(paragraph.split())):
                letters = sum(map(str.isalpha, sentence)) / max(1, len(sentence))
                if _PROSE.fullmatch(sentence) and len(sentence.split()) in _WORDS and letters > _LETTERS:
                    yield sentence


def _docstrings(text: str) -> list[str]:
    kinds = ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef
    return [ast.get_docstring(node) or "" for node in ast.walk(ast.parse(text)) if isinstance(node, kinds)]
