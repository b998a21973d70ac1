"""Remotes on real servers, and stores that share them."""

import os
from dataclasses import dataclass

import pytest

from engine.store.remote import keys
from engine.store.remote.settings import RemoteSettings
from engine.store.remote.tier import Tier
from engine.store.remote.trust import Trust, TrustedKey
from engine.store.store import Store

KINDS = ("folder", "s3", "azure", "web")


@dataclass(frozen=True)
class Remote:
    """A remote of one test: its URL, and the environment of those who write and of those who only read."""

    url: str
    writer: dict
    reader: dict
    read_only_url: str


@pytest.fixture(params=KINDS)
def remote(request, tmp_path):
    name = f"{tmp_path.parent.name}-{tmp_path.name}"
    if request.param == "folder":
        url = f"file://{tmp_path}/shared%20cache"
        return Remote(url, {}, {}, url)
    if request.param in {"s3", "azure"}:
        server = request.getfixturevalue("seaweed" if request.param == "s3" else "azurite")
        return Remote(server.url(name), server.environ("writer"), server.environ("reader"), server.url(name))
    server = request.getfixturevalue("nginx")
    return Remote(server.url(name), {}, {}, server.url(name, writes=False))


@pytest.fixture
def remote_at():
    """Return a remote at an URL that the test made up."""
    return lambda url, environ=None: Remote(url, environ or {}, environ or {}, url)


@pytest.fixture(scope="session")
def pair(tmp_path_factory):
    """The keys of the machine that pushes."""
    return keys.generate(tmp_path_factory.mktemp("keys") / "signing.key")


@pytest.fixture(scope="session")
def trust(pair):
    return Trust((TrustedKey(pair.public, "ci"),))


@pytest.fixture
def machine(tmp_path, pair, trust):
    """Return a store with a remote behind it; `machine(name, remote)` is another machine for each name."""
    open_tiers = []

    def of(name, remote, *, writes=False, trusts=trust, signer=pair, brief=False, url=None, retention=None):
        store = Store(tmp_path / name / "cache")
        environ = {"PATH": os.environ["PATH"], **(remote.writer if writes else remote.reader)}
        where = url or (remote.url if writes else remote.read_only_url)
        settings = RemoteSettings(
            where, environ, trusts, signer if writes else None, pushes=writes, retention=retention
        )
        store.tier = Tier(store, settings, brief=brief)
        open_tiers.append(store.tier)
        return store

    yield of
    for tier in open_tiers:
        tier.close()
