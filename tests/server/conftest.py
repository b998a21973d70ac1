"""A machine without any server, and one with a fake docker."""

import fake_docker
import pytest


@pytest.fixture
def bare(tmp_path, monkeypatch):
    """A machine without any server; `tmp_path / "bin"` is its PATH."""
    (tmp_path / "bin").mkdir()
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    monkeypatch.setenv("RECIPE_TRITON_VENV", str(tmp_path / "environment"))
    for name in ("NVIDIA_TRITON_SERVER_VERSION", "TRITON_SERVER_VERSION"):
        monkeypatch.delenv(name, raising=False)
    return tmp_path


@pytest.fixture
def docker(bare, monkeypatch):
    """The folder in which a fake docker on the PATH keeps what it was called with."""
    home = bare / "docker"
    monkeypatch.setenv("FAKE_DOCKER", str(home))
    fake_docker.install(bare / "bin", home)
    return home
