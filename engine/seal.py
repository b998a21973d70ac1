"""Sealed bytes: a checksum and then the content, so that a reader knows whether the content is as it was written."""

# An up-to-date build imports this module, so the module imports nothing itself.

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable


class Seal:
    """One form of sealed bytes: the bytes `head`, then a checksum of name and content, then the content.

    The name is that under which the bytes are kept, for example of a file. If a file's bytes are moved to another name,
    the checksum no longer matches.
    """

    def __init__(
        self, checksum: Callable[[bytes, bytes | memoryview], bytes], *, length: int, head: bytes = b""
    ) -> None:
        """`checksum(name, content)` is a function that returns a checksum of `length` bytes."""
        self._checksum = checksum
        self._head = head
        self._start = len(head) + length

    def close(self, content: bytes, name: bytes = b"") -> bytes:
        """Return `head`, then the checksum of `name` and `content`, then `content`."""
        return self._head + self._checksum(name, content) + content

    def open(self, raw: bytes, name: bytes = b"") -> memoryview:
        """Return the content of sealed bytes.

        Raises ValueError if the bytes have changed since they were sealed, or were sealed for another place.
        """
        content = memoryview(raw)[self._start :]
        if raw[: self._start] != self._head + self._checksum(name, content):
            raise ValueError("the seal does not fit")
        return content
