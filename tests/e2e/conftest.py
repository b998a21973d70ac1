"""Fixtures of the tests that drive the real command line."""

import shutil
import signal
from pathlib import Path

import pytest
import tiny_project
import triton_server
from program import Program


@pytest.fixture(scope="session")
def tiny_bert():
    """A tiny random BERT classifier with a tokenizer: do not write into it."""
    return tiny_project.built() / "model"


@pytest.fixture
def interruptible():
    """Let the processes of a test be interrupted where the tests run in the background, with SIGINT ignored, too."""
    before = signal.signal(
        signal.SIGINT, signal.default_int_handler
    )  # a child starts with the default of what is handled
    yield
    signal.signal(signal.SIGINT, before)


@pytest.fixture
def empty(tmp_path):
    """An empty project with the program in it."""
    (tmp_path / "pyproject.toml").write_text("")
    return Program(tmp_path)


@pytest.fixture
def shipped(tmp_path):
    """A copy of the recipes that ship, as a project of its own."""
    (tmp_path / "pyproject.toml").write_text("")
    shutil.copytree(Path(__file__).parent.parent.parent / "recipes", tmp_path / "recipes")
    return Program(tmp_path)


@pytest.fixture(scope="session")
def environment(request):
    """The environment with the pip-installed Triton server."""
    try:
        return triton_server.venv(request.config.cache.mkdir("triton"))
    except triton_server.Unavailable as reason:
        pytest.skip(f"no Triton server here: {reason}")
