"""The CPU: its instructions."""

import pytest

from engine.machine import cpu


@pytest.mark.parametrize(
    ("rows", "lacks"),
    [
        ({"flags": "sse4_2 avx2 fma"}, True),
        ({"flags": "avx2 avx512f avx512_vnni"}, False),
        ({"flags": "avx2 avx_vnni"}, False),
        ({"Features": "asimd asimddp"}, False),
        ({}, False),
    ],
)
def test_only_an_x86_that_lists_its_instructions_is_known_to_lack_vnni(monkeypatch, rows, lacks):
    monkeypatch.setattr(cpu, "description", lambda: rows)
    assert cpu.lacks_vnni() is lacks
