"""The code that runs inside Triton's python backend; packages carry unchanged copies of the files of the code."""

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
BOXES = "boxes.py"
MASK = "mask.py"
ROUTE = "route.py"
SPLIT = "split.py"
FUSED = "fused.py"
ON_GPU = "on_gpu.py"
UNREAD = "unread.py"
PROBE = "probe.py"
"""Lies beside the models of a package: an orchestrator runs it to learn whether the models answer."""
GENERATE = ("generate.py", "asked.py", "past.py", "pieces.py", "prompts.py", "sampling.py", UNREAD)
"""The files of a generating model: packages carry generate.py as model.py, and the other files beside model.py."""

data = (
    "model.py", "tokenizer.py", "image.py", "classify.py", "boxes.py", "mask.py", "tag.py", "answer.py", "embed.py",
    "fill.py", "route.py", "split.py", "fused.py", "on_gpu.py", "probe.py",
    "generate.py", "asked.py", "past.py", "pieces.py", "prompts.py", "sampling.py", "unread.py",
)  # fmt: skip


def code(name: str) -> bytes:
    """Return the content of a file of `kit/triton/served`, to be written into a package."""
    return (Path(__file__).parent / name).read_bytes()
