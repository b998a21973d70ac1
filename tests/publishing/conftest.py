"""Model repositories in a folder, on a real S3 server and on Azurite."""

import asyncio

import pytest
from published import write

from engine.publishing import published_config
from engine.publishing.publisher import Publisher, PublishWaits
from engine.publishing.repository import ModelRepository


@pytest.fixture(params=["folder", "s3", "azure"])
def url(request, tmp_path, monkeypatch):
    """A model repository of one test."""
    if request.param == "folder":
        return f"file://{tmp_path}/models"
    server = request.getfixturevalue("seaweed" if request.param == "s3" else "azurite")
    for name, value in server.environ("writer").items():
        monkeypatch.setenv(name, value)
    return server.url(f"{tmp_path.parent.name}-{tmp_path.name}")


@pytest.fixture
def built(tmp_path):
    """Return a built package: `built(3)` adds 3."""
    numbers = iter(range(1000))
    return lambda add, **changes: write(tmp_path / f"package-{next(numbers)}", add=add, **changes)


@pytest.fixture
def publish(url):
    """Publish a package and return the result."""

    def published(package, *, dry=False, stale=3600.0, lease=30.0, settle=0.0):
        publisher = Publisher(
            ModelRepository(url, writes=not dry), package, waits=PublishWaits(stale=stale, lease=lease, settle=settle)
        )
        return asyncio.run(publisher.plan() if dry else publisher.publish())

    return published


@pytest.fixture
def look(url):
    """Return how a test reads the repository: `read(name)`, `config(model)` and `names()`."""

    class Look:
        def read(self, name):
            return asyncio.run(ModelRepository(url, writes=False).read(name))

        def config(self, name):
            return published_config.parsed(self.read(f"{name}/config.pbtxt"))

        def names(self):
            return set(asyncio.run(ModelRepository(url, writes=False).listing()).entries)

    return Look()
