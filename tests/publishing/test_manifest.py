"""The decision about a version keeps what was published."""

import pytest

from engine.publishing import manifest
from engine.publishing.manifest import Manifest


def test_a_decision_is_read_as_it_was_written(built):
    decision = manifest.of_package(built(1), 4, 12.5)
    assert Manifest.of_bytes(decision.to_bytes(), decision.package, 4) == decision
    assert "films_first/4/model.py" in decision.files


@pytest.mark.parametrize("data", [b"", b"{}", b"[]", b"half", b"[" * 100_000])
def test_a_text_that_is_no_decision_is_refused(data):
    with pytest.raises(ValueError, match=r"manifest|Expecting|list"):
        Manifest.of_bytes(data, "films", 4)


@pytest.mark.parametrize(
    ("old", "new"),
    [('"version": 4', '"version": 3'), ('"version": 4', '"version": Infinity'), ('"when": 12.5', '"when": 1e300'),
     ('"when": 12.5', '"when": NaN'), ('"bytes": ', '"bytes": 1e999, "size": ')],
)  # fmt: skip
def test_a_decision_of_another_version_or_with_impossible_numbers_is_refused(built, old, new):
    decision = manifest.of_package(built(1), 4, 12.5)
    text = decision.to_bytes().decode()
    assert old in text
    with pytest.raises(ValueError, match="manifest"):
        Manifest.of_bytes(text.replace(old, new).encode(), decision.package, 4)
