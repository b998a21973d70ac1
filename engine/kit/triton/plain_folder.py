"""Plain folder: a package for a program without a server: the built model and the packages that run it."""

from __future__ import annotations

from pathlib import Path

from engine.kit.onnx import onnx_files
from engine.kit.triton.parts import REQUIREMENTS
from engine.runtimes.served import Served

TOKENIZER = "tokenizer.json"


def write(folder: Path, directory: Path, model: Served, *, tokenizer: str | None) -> None:
    """Link the files of a model into `folder`; write its tokenizer, if any, and requirements.txt."""
    import numpy as np

    onnx_files.link(directory, folder)
    needs = [*model.needs, f"numpy>={np.__version__.split('.', maxsplit=1)[0]}"]
    if tokenizer is not None:
        import tokenizers

        (folder / TOKENIZER).write_text(tokenizer, "utf-8")
        needs.append(f"tokenizers=={tokenizers.__version__}")
    lines = [f"# What runs {model.files[0]}; {model.why_plain}.", *needs]
    (folder / REQUIREMENTS).write_text("\n".join(lines) + "\n", "utf-8")
