"""Remotes on real servers, and stores that share them."""

import itertools
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
    return remote_of(request, request.param, tmp_path)


@pytest.fixture(params=KINDS[:3])
def listing(request, tmp_path):
    """A remote that can list its objects."""
    return remote_of(request, request.param, tmp_path)


@pytest.fixture(params=KINDS[:3])
def listings(request, tmp_path):
    """Yield one empty remote after another."""
    return (remote_of(request, request.param, tmp_path, str(number)) for number in itertools.count())


def remote_of(request, kind, tmp_path, number=""):
    name = f"{tmp_path.parent.name}-{tmp_path.name}{number}"
    if kind == "folder":
        return at(f"file://{tmp_path}/shared%20cache{number}")
    if kind in {"s3", "azure"}:
        server = request.getfixturevalue("seaweed" if kind == "s3" else "azurite")
        return Remote(server.url(name), server.environ("writer"), server.environ("reader"), server.url(name))
    server = request.getfixturevalue("nginx")
    return Remote(server.url(name), {}, {}, server.url(name, writes=False))


def at(url, environ=None):
    return Remote(url, environ or {}, environ or {}, url)


@pytest.fixture
def remote_at():
    """Return a remote at an URL that the test made up."""
    return at


@pytest.fixture
def folder(tmp_path):
    """A remote that is a folder, for what is the same at every remote."""
    return at(f"file://{tmp_path}/shared")


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
        signer = signer if writes else None
        settings = RemoteSettings(where, environ, trusts, signer, pushes=writes, retention=retention)
        store.tier = Tier(store, settings, brief=brief)
        open_tiers.append(store.tier)
        return store

    yield of
    for tier in open_tiers:
        tier.close()
