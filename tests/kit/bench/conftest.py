"""Contenders of these tests leave no threads behind, so their turns need no rest, and their clocks never wait."""

import pytest

from engine.kit.bench import interleaving


@pytest.fixture(autouse=True)
def no_rest(monkeypatch, request):
    if request.node.name != "test_a_turn_begins_after_a_rest":
        monkeypatch.setattr(interleaving, "_REST", 0)
    monkeypatch.setattr(interleaving, "_OTHERS", 1)


@pytest.fixture(autouse=True)
def waited(monkeypatch):
    """The function that says for how long threads have waited for a CPU; in other tests they never wait."""
    real = interleaving._waited
    monkeypatch.setattr(interleaving, "_waited", lambda: 0.0)
    return real
