"""What every script of a peer shares: its request, and the answer that it writes. It runs in the peer's environment."""

from __future__ import annotations

import importlib.metadata
import json
import sys
from pathlib import Path


def request() -> dict[str, str]:
    """Return the request: the model's folder, the exported ONNX file, the folder to write into, the task."""
    return json.loads(Path(sys.argv[1]).read_text())


def sentences(given: dict[str, str]) -> list[str]:
    """Return the sentences for calibration."""
    return json.loads(Path(given["calibration"]).read_text())


def samples(given: dict[str, str], names: list[str]) -> list[dict]:
    """Return the inputs for calibration: rows of tokens of the sentences, or the stored pictures one by one."""
    import numpy as np

    if given["kind"] != "text":
        stored = np.load(given["calibration"])
        return [{name: stored[name][number : number + 1] for name in names} for number in range(len(stored[names[0]]))]
    import transformers

    tokenizer = transformers.AutoTokenizer.from_pretrained(given["checkpoint"])
    rows = [tokenizer(text, return_tensors="np", truncation=True, max_length=256) for text in sentences(given)]
    rows = [{**row, "token_type_ids": np.zeros_like(row["input_ids"])} for row in rows]
    return [{name: np.asarray(row[name]).astype("int64") for name in names} for row in rows]


def answered(given: dict[str, str], kind: str, path: Path, packages: list[str], options: dict | None = None) -> None:
    """Write where the model is, what opens it and how, and the versions of the packages that made it."""
    versions = ", ".join(f"{name} {importlib.metadata.version(name)}" for name in packages)
    text = json.dumps({"kind": kind, "path": str(path), "versions": versions, "options": options or {}})
    (Path(given["out"]) / "answer.json").write_text(text)
