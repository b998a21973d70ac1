"""Sizes as people type them and read them."""

import pytest

from engine.text import sizes


@pytest.mark.parametrize(
    ("text", "size"),
    [("20GB", 20 * 10**9), ("512MiB", 512 << 20), ("1.5 gb", 1_500_000_000), ("7", 7), ("7 B", 7), ("3 kB", 3000)],
)
def test_a_typed_size_is_bytes(text, size):
    assert sizes.parse(text) == size


@pytest.mark.parametrize(("text", "size"), [("1.5g", 1_500_000_000), ("2Gi", 2 << 30), ("3k", 3000)])
def test_a_letter_is_a_unit_only_where_letters_are_allowed(text, size):
    assert sizes.parse(text, letters=True) == size
    with pytest.raises(ValueError, match="is no size"):
        sizes.parse(text)


@pytest.mark.parametrize("text", ["", "GB", "-1GB", "1.GB", "1e3", "2 PB", "1_000", "9" * 19, "2iB", "٣GB"])
def test_other_texts_are_no_sizes(text):
    with pytest.raises(ValueError, match="is no size"):
        sizes.parse(text, letters=True)


def test_sizes_on_disk_are_decimal_and_those_in_memory_binary():
    assert [sizes.decimal(size) for size in (0, 999, 1_500, 22_800_000, 1_234_000_000)] == [
        "0 bytes", "999 bytes", "1.5 kB", "22.8 MB", "1.2 GB",
    ]  # fmt: skip
    assert [sizes.binary(size) for size in (1023, 1536, 3 << 20, 1.5 * sizes.GIB, 4 * sizes.TIB)] == [
        "1023 bytes", "1.5 KiB", "3.0 MiB", "1.5 GiB", "4.0 TiB",
    ]  # fmt: skip
