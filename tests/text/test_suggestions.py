"""Names that look like a misspelt word."""

import pytest

from engine.text import suggestions

NAMES = ("precision", "profiles", "package")


def test_the_nearest_names_come_first():
    assert suggestions.nearest("precison", NAMES) == ["precision"]
    assert suggestions.nearest("fp61", ["fp32", "fp16", "fp8"], count=2, least=0.5) == ["fp16", "fp8"]
    assert suggestions.nearest("zebra", NAMES) == suggestions.nearest("pack", NAMES, least=0.9) == []
    assert suggestions.nearest("PRECISION", NAMES) == ["precision"]
    assert suggestions.did_you_mean("T4", "L4") == "did you mean T4 or L4?"


@pytest.mark.parametrize(
    ("word", "names", "hint"),
    [
        ("precison", NAMES, "did you mean `precision`?"),
        ("zebra", NAMES, "known here: precision, profiles, package"),
        ("zebra", (), "leave it out"),
    ],
)
def test_a_hint_names_the_nearest_or_all(word, names, hint):
    assert suggestions.hint(word, names) == hint
