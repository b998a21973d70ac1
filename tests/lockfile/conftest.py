"""A project to lock, and a CPU that tests choose."""

import pretended
import pytest


@pytest.fixture
def project(tmp_path):
    (tmp_path / "model.onnx").write_bytes(b"")
    (tmp_path / "r.yaml").write_text("name: r\nmodel: {source: model.onnx}\n")
    (tmp_path / "t.txt").write_text("text")
    return tmp_path


@pytest.fixture
def isa(monkeypatch):
    """Let a test choose the CPU."""

    def be(value):
        pretended.fact(monkeypatch, "cpu.isa", value)

    be("avx2")
    return be
