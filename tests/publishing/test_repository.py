"""A model repository at a URL: what is refused, and a file that changes while it is written."""

import asyncio

import pytest

from engine.errors import StepError, UsageError
from engine.publishing.package import PackageFile
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
