"""Fixtures of the tests that drive the real command line."""

import models
import pytest
from program import Program


@pytest.fixture(scope="session")
def tiny_bert(tmp_path_factory):
    """A tiny random BERT classifier with a tokenizer: do not write into it."""
    return models.checkpoint(tmp_path_factory.mktemp("tiny") / "model", "bert", task="text-classification")


@pytest.fixture
def empty(tmp_path):
    """An empty project with the program in it."""
    (tmp_path / "pyproject.toml").write_text("")
    return Program(tmp_path)
