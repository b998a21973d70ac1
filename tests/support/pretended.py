"""Facts of this machine that a test pretends."""

from __future__ import annotations

from dataclasses import replace

from engine.builder import facts
from engine.facts import FACTS, Known


def fact(monkeypatch, name, value):
    """Let a fact have another value."""
    facts.describing()  # until it is asked for, its home has not declared it
    monkeypatch.setitem(FACTS, name, replace(FACTS[name], tell=lambda _: Known(value)))
