import pytest
from pydantic import TypeAdapter, ValidationError

from engine.recipe import licenses
from engine.recipe.licenses import License, Licensed, LicenseStatement


def stated(spdx, text="x"):
    return Licensed(role="model", source="hf:a/b", statements=(LicenseStatement(text=text, by="README.md", spdx=spdx),))


def test_an_id_gets_the_spelling_of_spdx():
    assert licenses.canonical("apache-2.0") == "Apache-2.0"
    assert licenses.canonical("see the website") is None


@pytest.mark.parametrize(
    ("expression", "names", "result"),
    [
        ("MIT", ["MIT"], True),
        ("MIT", ["Apache-2.0"], False),
        ("MIT OR GPL-3.0-only", ["MIT"], True),
        ("MIT AND GPL-3.0-only", ["MIT"], False),
        ("GPL-3.0-only OR MIT AND ISC", ["MIT", "ISC"], True),
        ("(GPL-3.0-only OR MIT) AND ISC", ["MIT"], False),
        ("GPL-2.0-only WITH Classpath-exception-2.0", ["GPL-2.0-only"], False),
        ("GPL-2.0-only WITH Classpath-exception-2.0", ["GPL-2.0-only WITH Classpath-exception-2.0"], True),
    ],
)
def test_a_list_allows_an_expression_by_its_operators(expression, names, result):
    assert licenses.allowed(expression, names) is result


def test_a_licence_that_is_not_known_or_has_no_spdx_id_is_refused():
    assert "not known" in Licensed(role="model", source="hf:a/b").refusals(["MIT"])[0]
    assert "no SPDX id" in stated(None, "BSD License").refusals(["MIT"])[0]
    assert stated("MIT").refusals(["MIT"]) == []


def test_a_misspelt_id_in_a_policy_gets_a_hint():
    with pytest.raises(ValidationError) as caught:
        TypeAdapter(License).validate_python("apache-2")
    assert "Apache-2.0" in caught.value.errors()[0]["ctx"]["hint"]
    with pytest.raises(ValidationError, match="single licences"):
        TypeAdapter(License).validate_python("MIT OR ISC")
