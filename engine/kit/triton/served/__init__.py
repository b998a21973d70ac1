"""The code that runs inside Triton's python backend: each file here is shipped in packages as it is."""

from __future__ import annotations

from pathlib import Path

MODEL = "model.py"
TOKENIZER = "tokenizer.py"
IMAGE = "image.py"
CLASSIFY = "classify.py"
TAG = "tag.py"
ANSWER = "answer.py"
EMBED = "embed.py"
FILL = "fill.py"
GENERATE = ("generate.py", "asked.py", "past.py", "pieces.py", "prompts.py")
"""A generating model: the first is its model.py, the others lie beside it."""

data = (
    "model.py", "tokenizer.py", "image.py", "classify.py", "tag.py", "answer.py", "embed.py", "fill.py",
    "generate.py", "asked.py", "past.py", "pieces.py", "prompts.py",
)  # fmt: skip


def code(name: str) -> bytes:
    """Return one of the files above, for a package."""
    return (Path(__file__).parent / name).read_bytes()
