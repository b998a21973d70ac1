"""A model repository at a URL: what is refused, and a file that changes while it is written."""

import asyncio

import pytest
from published import SERVICE

from engine.errors import StepError, UsageError
from engine.publishing.package import PackageFile
from engine.publishing.publisher import PublishState
from engine.publishing.repository import ModelRepository


@pytest.mark.parametrize("wrong", ["models", "https://models.example/x", "file://models/x"])
def test_a_url_without_a_model_repository_is_refused(wrong):
    with pytest.raises(UsageError):
        ModelRepository(wrong, writes=False)


@pytest.mark.parametrize("size", [10, 20 << 20])
def test_a_file_that_changed_is_never_seen(url, look, tmp_path, size):
    path = tmp_path / "file"
    path.write_bytes(b"a" * size)
    file = PackageFile.of(path)
    path.write_bytes(b"b" * size)
    with pytest.raises(StepError, match="changed while"):
        asyncio.run(ModelRepository(url, writes=True).upload("m/1/file", file, lambda _: None))
    assert look.names() == set()


@pytest.mark.parametrize("url", ["folder"], indirect=True)
def test_a_turn_that_was_never_given_back_is_taken(publish, built, look, url):
    asyncio.run(ModelRepository(url, writes=True).create(f".recipe.{SERVICE}.turn.1", b"killed"))
    assert publish(built(1), lease=0.3).state is PublishState.PUBLISHED
    assert not [name for name in look.names() if ".turn." in name]
