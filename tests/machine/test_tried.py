"""Libraries that are newer than the last version that was tried: each is one sentence."""

import pytest

from engine.machine import tools, tried


@pytest.fixture
def installed(monkeypatch):
    """Let the versions of installed libraries be what a test writes; the others are not installed."""
    versions = {}
    monkeypatch.setattr(tools, "version_of", lambda name: versions.get(name, tools.MISSING))
    monkeypatch.setattr(tried, "NEWEST", {"torch": "2.13.0", "transformers": "5.24.0"})
    return versions


def test_a_library_that_is_newer_than_the_last_one_tried_is_one_sentence(installed):
    installed |= {"transformers": "5.25.0", "torch": "2.13.0"}
    sentence = "transformers 5.25.0 is newer than 5.24.0, the last version that was tried"
    assert tried.newer(["torch", "transformers"]) == [sentence]
    assert tried.newer(["torch", "scipy"]) == []


@pytest.mark.parametrize("version", ["2.13.0+cpu", "2.12.1", "2.9.0", tools.MISSING])
def test_a_build_of_the_version_that_was_tried_and_older_ones_are_no_news(installed, version):
    installed["torch"] = version
    assert tried.newer(["torch"]) == []


def test_a_newer_build_is_told_without_its_label(installed):
    installed["torch"] = "2.13.1+cu130"
    assert tried.newer(["torch"])[0].startswith("torch 2.13.1 is newer")
