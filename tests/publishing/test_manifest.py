"""The decision about a version keeps what was published."""

import pytest

from engine.publishing import manifest
from engine.publishing.manifest import Manifest


def test_a_decision_is_read_as_it_was_written(built):
    decision = manifest.of_package(built(1), 4, 12.5)
    assert Manifest.of_bytes(decision.to_bytes()) == decision
    assert "films_first/4/model.py" in decision.files


@pytest.mark.parametrize("data", [b"", b"{}", b"[]", b"half"])
def test_a_text_that_is_no_decision_is_refused(data):
    with pytest.raises(ValueError, match=r"manifest|Expecting|list"):
        Manifest.of_bytes(data)
