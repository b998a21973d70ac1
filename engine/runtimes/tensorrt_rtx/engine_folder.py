"""A package without a server: a TensorRT-RTX engine with all that a program of one's own needs to run it."""

# There is no Triton repository for one: Triton's TensorRT backend does not load TensorRT-RTX engines.

from __future__ import annotations

from pathlib import Path

from engine.kit.onnx import onnx_files

NOT_TRITON = "no Triton repository: Triton's TensorRT backend does not load TensorRT-RTX engines"
TOKENIZER, REQUIREMENTS = "tokenizer.json", "requirements.txt"


def write(folder: Path, engine: Path, *, version: str, tokenizer: str | None) -> None:
    """Link the files of an engine into `folder`; add its tokenizer, if any, and the packages that run it.

    `version` is that of the TensorRT-RTX that built it: no other one loads it for certain.
    """
    import numpy as np

    onnx_files.link(engine, folder)
    needs = [f"tensorrt-rtx-cu12=={version}", "cuda-bindings", f"numpy>={np.__version__.split('.', maxsplit=1)[0]}"]
    if tokenizer is not None:
        import tokenizers

        (folder / TOKENIZER).write_text(tokenizer, "utf-8")
        needs.append(f"tokenizers=={tokenizers.__version__}")
    lines = [f"# What runs model.plan; {NOT_TRITON}.", *needs]
    (folder / REQUIREMENTS).write_text("\n".join(lines) + "\n", "utf-8")
