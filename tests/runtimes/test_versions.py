"""Versions, compared as far as both are written."""

import pytest

from engine.runtimes import versions


@pytest.mark.parametrize(
    ("version", "than", "later"),
    [
        ("10.13", "10.9.0.34", True),
        ("10.9", "10.9.0.34", False),
        ("10.9.0.34", "10.9", False),
        ("11.x", "10.7", True),
        ("10.x", "10.7", False),
        ("", "10.7", False),
    ],
)
def test_a_version_is_later_by_the_numbers_that_both_have(version, than, later):
    assert versions.is_later(version, than=than) is later


@pytest.mark.parametrize(
    ("tensorrt", "exactly", "compatibly"),
    [
        ("10.9.0.34", True, True),
        ("10.9", True, True),
        ("10.13.0.35", False, True),
        ("10.8.0.43", False, False),
        ("11.0.0.1", False, False),
    ],
)
def test_an_engine_is_loaded_by_its_own_version_and_a_compatible_one_by_later_minors(tensorrt, exactly, compatibly):
    assert versions.loads_engine(tensorrt, built_by="10.9.0.34", version_compatible=False) is exactly
    assert versions.loads_engine(tensorrt, built_by="10.9.0.34", version_compatible=True) is compatibly
