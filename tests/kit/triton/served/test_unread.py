"""Texts that are too large are not copied: their length is all that a model learns of them."""

import struct
import sys
import tracemalloc
import types

import numpy as np
import pytest

from engine.kit.triton.served import unread

MOST = 8


def encoded(*texts):
    return np.frombuffer(b"".join(struct.pack("<I", len(text)) + text for text in texts), dtype=np.uint8)


def test_texts_within_the_limit_are_read_as_they_are():
    texts = [b"", b"a", "ääää".encode(), bytes(range(8))]
    read = unread.reader(MOST)(encoded(*texts)).reshape(2, 2)
    assert read.dtype == object
    assert read.tolist() == [texts[:2], texts[2:]]
    assert unread.reader(MOST)(encoded()).tolist() == []


def test_a_larger_text_keeps_its_place_and_its_length():
    first, second, third = unread.reader(MOST)(encoded(b"a", b"x" * 9, b"b"))
    assert (first, len(second), third) == (b"a", 9, b"b")
    with pytest.raises(ValueError, match="a text of 9 bytes; this model takes at most 8 bytes"):
        second.decode("utf-8")


def test_a_larger_text_is_not_copied():
    tensor = encoded(b"x" * 10_000_000)
    tracemalloc.start()
    [text] = unread.reader(MOST)(tensor)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert len(text) == 10_000_000
    assert peak < 1_000_000


def test_the_backend_reads_by_it_where_it_has_such_a_function(monkeypatch):
    backend = types.SimpleNamespace(deserialize_bytes_tensor=None)
    monkeypatch.setitem(sys.modules, "triton_python_backend_utils", backend)
    unread.leave_unread(MOST)
    assert len(backend.deserialize_bytes_tensor(encoded(b"x" * 9))[0]) == 9
    other = types.SimpleNamespace()
    monkeypatch.setitem(sys.modules, "triton_python_backend_utils", other)
    unread.leave_unread(MOST)
    assert vars(other) == {}
