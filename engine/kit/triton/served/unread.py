"""Texts that are too large stay unread. Packages carry unread.py beside model.py."""

from __future__ import annotations

import struct
from collections.abc import Callable
from typing import Any


class Unread:
    """A text that is too large, in place of its bytes: its length is known, and its content was never copied."""

    def __init__(self, size: int, most: int) -> None:
        """Store the number of bytes that the text has, and the number that the model takes."""
        self.size, self.most = size, most

    def __len__(self) -> int:
        """Return the number of bytes of the text."""
        return self.size

    def decode(self, _encoding: str = "utf-8") -> str:
        """Raise the ValueError that answers the request."""
        raise ValueError(f"a text of {self.size} bytes; this model takes at most {self.most} bytes")


def reader(most: int) -> Callable[[Any], Any]:
    """Return a function that turns the bytes of a tensor of texts into an array of its texts.

    Before each text stand four bytes with its length. A text of more than `most` bytes becomes an Unread.
    """

    def read(encoded: Any) -> Any:
        import numpy as np

        view, texts, place = memoryview(encoded), [], 0
        while place < len(view):
            [size] = struct.unpack_from("<I", view, place)
            place += 4
            texts.append(bytes(view[place : place + size]) if size <= most else Unread(size, most))
            place += size
        array = np.empty(len(texts), dtype=object)
        array[:] = texts
        return array

    return read


def leave_unread(most: int) -> None:
    """Let Triton's python backend read no text of more than `most` bytes in this process.

    The backend reads all texts of a batch before the model sees any of them: with eight texts of 100 MB, every other
    request of the batch waits for 800 MB of copies. It reads them by a function of its own Python module; where a
    release has no such function, nothing is changed, and the model refuses the same texts after they were read.
    """
    import triton_python_backend_utils as triton  # type: ignore[import-not-found]  # only inside the server

    if hasattr(triton, "deserialize_bytes_tensor"):
        triton.deserialize_bytes_tensor = reader(most)
