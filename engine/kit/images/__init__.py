"""Images: how an image file becomes the input tensors of a model, and which settings say so."""

from pathlib import Path

PREPARATION = "preparation.py"
"""The module of this room that packages carry unchanged."""

data = ("preparation.py",)


def code() -> bytes:
    """Return the content of `preparation.py`, to be written into a package."""
    return (Path(__file__).parent / PREPARATION).read_bytes()
