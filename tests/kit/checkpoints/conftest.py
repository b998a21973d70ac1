"""Fixtures of the tests that speak to a fake hub."""

import os
import time

import fake_hub
import pytest
from fake_hub import FIRST, REPO, SECOND, TOKEN, FakeHub

from engine import digest
from engine.builder.sources import resolve
from engine.errors import StepError
from engine.step import Source
from engine.steps.fetch import Fetch


@pytest.fixture
def hub(tmp_path, monkeypatch):
    for name in list(os.environ):
        if name.startswith(("HF_", "HUGGING_FACE_")) or name.lower().endswith("_proxy"):
            monkeypatch.delenv(name)
    monkeypatch.setenv("HF_HOME", str(tmp_path / "hf"))
    with FakeHub(repositories={REPO: {FIRST: fake_hub.model(), SECOND: fake_hub.model(fill=1)}}) as server:
        monkeypatch.setenv("HF_ENDPOINT", server.endpoint)
        yield server


@pytest.fixture
def naps(monkeypatch):
    """The seconds for which the client would sleep before it tries again: none are slept."""
    slept: list[float] = []
    monkeypatch.setattr(time, "sleep", slept.append)
    return slept


@pytest.fixture
def built(tmp_path):
    """Resolve and fetch a source into a fresh folder; return it."""
    numbers = iter(range(100))

    def build(uri=f"hf:{REPO}", revision=None, **options):
        source = Source(uri=uri, revision=revision)
        resolution = resolve(source, digest_file=digest.of_file, commits={})
        out = tmp_path / f"out{next(numbers)}"
        Fetch(source=source, **options).run(out, source=resolution.location)
        return out

    return build


@pytest.fixture
def failure(built):
    """Fetch what cannot be fetched; return what the error tells, in which no secret may be."""

    def fail(*args, **options):
        with pytest.raises(StepError) as caught:
            built(*args, **options)
        error = str(caught.value)
        assert TOKEN not in error
        assert "Signature" not in error
        assert caught.value.__cause__ is None, "the client's own error may quote headers"
        return error

    return fail
