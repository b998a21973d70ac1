"""Contenders of these tests leave no threads behind, so their turns need no rest."""

import pytest

from engine.kit.bench import turns


@pytest.fixture(autouse=True)
def no_rest(monkeypatch, request):
    if request.path.name != "test_turns.py":
        monkeypatch.setattr(turns, "_REST", 0)
