"""Contenders of these tests leave no threads behind, so their turns need no rest."""

import pytest

from engine.kit.bench import interleaving


@pytest.fixture(autouse=True)
def no_rest(monkeypatch, request):
    if request.node.name != "test_a_turn_begins_after_a_rest":
        monkeypatch.setattr(interleaving, "_REST", 0)
    monkeypatch.setattr(interleaving, "_OTHERS", 1)
