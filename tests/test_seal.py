"""Seals: content is read back only as it was written, and only under its own name."""

import subprocess
import sys
from zlib import crc32

import pytest

from engine.seal import Seal

CRC = Seal(lambda place, content: crc32(content, crc32(place)).to_bytes(4, "little"), length=4, head=b"crc:")


def test_sealed_bytes_open_where_they_were_closed():
    raw = CRC.close(b"content", b"place")
    assert raw.startswith(b"crc:")
    assert raw.endswith(b"content")
    assert CRC.open(raw, b"place") == b"content"


@pytest.mark.parametrize("place", range(4 + 4 + len(b"content")))
def test_a_changed_byte_breaks_the_seal(place):
    raw = bytearray(CRC.close(b"content", b"place"))
    raw[place] ^= 1
    with pytest.raises(ValueError, match="seal"):
        CRC.open(bytes(raw), b"place")


@pytest.mark.parametrize("raw", [b"", b"crc:", b"crc:123"])
def test_bytes_that_are_too_short_have_no_seal(raw):
    with pytest.raises(ValueError, match="seal"):
        CRC.open(raw)


def test_another_place_breaks_the_seal():
    with pytest.raises(ValueError, match="seal"):
        CRC.open(CRC.close(b"content", b"place"), b"another")


def test_a_seal_imports_nothing():
    """An up-to-date build imports it."""
    code = "import sys; before = set(sys.modules); import engine.seal; print(*(set(sys.modules) - before))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert set(done.stdout.split()) <= {"engine", "engine.seal", "__future__"}
