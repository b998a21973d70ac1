"""Numbers with a unit, as people type them, are written as the plain number of the field."""

import argparse

import pytest

from engine.commands import amounts
from engine.text import quantities, sizes


@pytest.mark.parametrize(
    ("text", "name", "hint"),
    [
        ("5ms", "p95_ms", "write 5, the number of milliseconds"),
        ("0.5 s", "p95_ms", "write 500, the number of milliseconds"),
        ("250us", "mean_ms", "write 0.25, the number of milliseconds"),
        ("250µs", "mean_ms", "write 0.25, the number of milliseconds"),
        ("2min", "p99_ms", "write 120000, the number of milliseconds"),
        ("5ms", "max_queue_delay_microseconds", "write 5000, the number of microseconds"),
        ("100 us", "default_timeout_microseconds", "write 100, the number of microseconds"),
        ("60s", "_seconds", "write 60, the number of seconds"),
        ("95%", "at_least", "write 0.95"),
        ("99.5 %", "cosine", "write 0.995"),
        ("5 percent", "agreement", "write 0.05"),
        ("128 tokens", "sequence", "write 128"),
        ("224px", "size", "write 224"),
        ("1k", "batch", "write 1000"),
        ("1,000", "batch", "write 1000"),
        ("0,95", "cosine", "write 0.95"),
        ("0.9", "cosine", "write 0.9"),
        ("1e3", "batch", "write 1000"),
        ("-1", "cosine", "write -1"),
    ],
)
def test_a_quantity_is_written_in_the_unit_of_the_field(text, name, hint):
    assert quantities.hint(text, name) == hint


@pytest.mark.parametrize(
    ("text", "name"),
    [
        *(("", "p95_ms"), ("fast", "p95_ms"), ("ms", "p95_ms"), ("5 parsecs", "p95_ms"), ("5%", "p95_ms")),
        *(("5ms", "cosine"), ("5ms", "batch"), ("1,2,3", "cosine"), ("1.2.3", "cosine"), ("9" * 400, "cosine")),
    ],
)
def test_what_cannot_be_converted_gets_no_hint(text, name):
    assert quantities.hint(text, name) == ""


def test_a_number_that_the_field_refuses_is_no_hint():
    assert quantities.hint("1.5", accepts=float.is_integer) == ""
    assert quantities.hint("1.5k", accepts=float.is_integer) == "write 1500"


def test_an_age_of_0_needs_no_unit():
    assert amounts.age("0") == amounts.age("0d") == 0.0


@pytest.mark.parametrize(
    ("read", "text", "message"),
    [
        (amounts.count, "1.5", "'1.5' is no whole number"),
        (amounts.count, "4x", "'4x' is no whole number: write 4"),
        (amounts.port, "80.5", "'80.5' is no whole number"),
        (amounts.seconds, "-5", "'-5' is no number of seconds above 0"),
        (amounts.seconds, "2min", "'2min' is no number of seconds above 0: write 120, the number of seconds"),
        (amounts.duration, "soon", "'soon' is no duration: write 30m, 90s or 2h"),
        (amounts.duration, "30", "'30' has no unit: write 30m for minutes, 30s for seconds"),
        (amounts.duration, "30M", "'30M' may mean minutes or months: write 30m, or the days as in 30d"),
        (amounts.share, "5", "'5' is no share from 0 to 1"),
        (amounts.share, "5%", "'5%' is no share from 0 to 1: write 0.05"),
    ],
)
def test_an_option_is_never_mended_to_what_it_refuses(read, text, message):
    with pytest.raises(argparse.ArgumentTypeError) as error:
        read(text)
    assert str(error.value) == message


@pytest.mark.parametrize(
    ("text", "hint"),
    [
        ("2", "write 2GiB or 2MiB; 2B if bytes are meant"),
        ("4096", "write 4096MiB; 4096B if bytes are meant"),
        ("2G", "write 2GB or 2GiB"),
        ("2 m", "write 2MB or 2MiB"),
        ("5ms", "sizes look like 512MiB, 2GiB or 1.5GB"),
        ("many", "sizes look like 512MiB, 2GiB or 1.5GB"),
    ],
)
def test_a_size_without_its_unit_gets_one(text, hint):
    assert sizes.hint(text) == hint


def test_only_a_bare_number_lacks_a_unit():
    texts = ("5", " 5 ", "5.0", "1e9", "1_000", "-5", "5B", "5 GB", "5ms", "many", "")
    assert [text for text in texts if sizes.lacks_unit(text)] == ["5", " 5 ", "5.0", "1e9", "1_000", "-5"]
