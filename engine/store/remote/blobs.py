"""Blobs: the content of files as objects that are named by the SHA-256 of their bytes, compressed where it pays."""

# A large file is a list of blobs. A transfer that was cut goes on with the next blob, several blobs travel at a time,
# and no protocol needs uploads in parts.

from __future__ import annotations

import base64
import binascii
import hashlib
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import zstandard

from engine.store.remote.objects import BLOBS, RefusedError
from engine.system import regular

SIZE = 16 << 20
"""The most bytes of a file in one blob."""
INLINE = 4096
"""A file of at most so many bytes is in the record itself: one object less to ask for."""
_LEVEL = 3
_PAYS = 0.9
"""A blob is stored compressed if the compressed bytes are fewer than this share."""
_SAMPLE = 1 << 18
"""Bytes that are compressed to see whether compressing the whole blob can pay."""
_ZSTD, _PLAIN = "zstd", ""
_SHA256 = re.compile("[0-9a-f]{64}")


@dataclass(frozen=True)
class Blob:
    """A part of a file: the SHA-256 and the size of its bytes, and how they lie at the remote."""

    sha256: str
    size: int
    encoding: str
    stored: int
    """The size of the object in bytes; 0 for a part that is in the record itself."""
    inline: bytes | None = None

    @property
    def name(self) -> str:
        """The name of the blob's object."""
        return f"{BLOBS}/{self.sha256[:2]}/{self.sha256}{'.zst' if self.encoding else ''}"

    def fields(self) -> dict[str, Any]:
        """Return the blob for JSON."""
        if self.inline is not None:
            return {"sha256": self.sha256, "size": self.size, "inline": base64.b64encode(self.inline).decode()}
        return {"sha256": self.sha256, "size": self.size, "encoding": self.encoding, "stored": self.stored}

    @classmethod
    def parse(cls, fields: Mapping[str, Any]) -> Blob:
        """Return the blob of JSON fields. Raises RefusedError."""
        try:
            inline = fields.get("inline")
            blob = cls(
                str(fields["sha256"]), int(fields["size"]), str(fields.get("encoding", "")),
                int(fields.get("stored", 0)), None if inline is None else base64.b64decode(inline, validate=True),
            )  # fmt: skip
        except (KeyError, TypeError, ValueError, AttributeError, binascii.Error):
            raise RefusedError("wrong blob", "the record names a blob in an unknown form") from None
        if _SHA256.fullmatch(blob.sha256) is None or blob.encoding not in (_ZSTD, _PLAIN):
            raise RefusedError("wrong blob", f"the record names a blob {blob.sha256[:80]!r} {blob.encoding[:20]!r}")
        most = INLINE if blob.inline is not None else SIZE
        if not 0 <= blob.size <= most or not 0 <= blob.stored <= SIZE:
            raise RefusedError("wrong blob", f"a blob of {blob.size} bytes is named, at most {most} are allowed")
        return blob

    def opened(self, raw: bytes) -> bytes:
        """Return the blob's bytes from the object's bytes. Raises RefusedError where they are not what is promised."""
        if self.encoding:
            try:
                # The size is bounded: no object grows beyond what the record promises.
                with zstandard.ZstdDecompressor().stream_reader(raw) as reader:
                    content = reader.read(self.size + 1)
            except zstandard.ZstdError:
                raise RefusedError("damaged blob", f"the blob {self.sha256} cannot be decompressed") from None
        else:
            content = raw
        if len(content) != self.size:
            more = "more" if len(content) > self.size else "fewer"
            raise RefusedError("wrong size", f"the blob {self.sha256} has {more} bytes than its record says")
        if hashlib.sha256(content).hexdigest() != self.sha256:
            raise RefusedError("wrong digest", f"the bytes of the blob {self.sha256} have another SHA-256")
        return content


def parts(path: Path) -> Iterator[tuple[Blob, bytes]]:
    """Yield the blobs of a file, each with its bytes; an empty file has one blob. Raises OSError."""
    with regular.open_file(path) as file:
        content = file.read(SIZE)
        yield of_bytes(content)[0], content
        while len(content) == SIZE and (content := file.read(SIZE)):
            yield of_bytes(content)[0], content


def sha256_of(path: Path) -> str:
    """Return the SHA-256 of a file, in hexadecimal digits. Raises OSError."""
    with regular.open_file(path) as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def of_bytes(content: bytes) -> tuple[Blob, bytes]:
    """Return the blob of up to `SIZE` bytes, and the bytes of its object."""
    sha256 = hashlib.sha256(content).hexdigest()
    if len(content) <= INLINE:
        return Blob(sha256, len(content), _PLAIN, 0, content), b""
    compressor = zstandard.ZstdCompressor(level=_LEVEL)
    if len(compressor.compress(content[:_SAMPLE])) <= _PAYS * min(len(content), _SAMPLE):
        packed = compressor.compress(content)
        if len(packed) <= _PAYS * len(content):
            return Blob(sha256, len(content), _ZSTD, len(packed)), packed
    return Blob(sha256, len(content), _PLAIN, len(content)), content
