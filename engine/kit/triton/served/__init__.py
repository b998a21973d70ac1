"""The code that runs inside Triton's python backend: each file here is shipped in packages as it is."""

from __future__ import annotations

from pathlib import Path

# Files that are named here count as data of whatever ships them.
TOKENIZER = "tokenizer.py"


def code(name: str) -> bytes:
    """Return one of the files above, for a package's `model.py`."""
    return (Path(__file__).parent / name).read_bytes()
