"""Pushes and pulls that are killed at any moment: no half record, and the next attempt goes on."""

import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from remote_transfers import SCRIPT
from stores import put

from engine.store import verification

KEY = {"step": "x", "code": "c"}
SMALL, LARGE_BYTES = 40, 48 << 20


@pytest.fixture
def work(tmp_path, remote, pair, request, monkeypatch):
    """Run a push or a pull in a process of its own; with `after`, it is killed after so many seconds."""
    if remote.url.startswith("http"):
        pytest.skip("a web server cannot list what it has")
    key = tmp_path / "pair"
    from cryptography.hazmat.primitives import serialization as form

    key.write_bytes(pair.key.private_bytes(form.Encoding.PEM, form.PrivateFormat.PKCS8, form.NoEncryption()))

    def run(what, root, *, after=None):
        command = [sys.executable, "-c", SCRIPT, what, str(root), remote.url, str(key)]
        process = subprocess.Popen(command, stdout=subprocess.PIPE, env=os.environ | remote.writer)
        assert process.stdout.readline() == b"begun\n"
        if after is None:
            assert process.wait(timeout=300) == 0
        else:
            time.sleep(after)
            process.send_signal(signal.SIGKILL)
            process.wait(timeout=60)
        process.stdout.close()
        return process.returncode

    return run


def fill(store):
    for number in range(SMALL):
        put(store, {**KEY, "options.n": str(number)}, {"f": str(number) * 300, "g/h": ""})
    large = random.Random(1).randbytes(LARGE_BYTES // 2).hex()
    put(store, {**KEY, "options.n": "large"}, {"weights": large})
    store.leave()


def whole_records(machine, remote, name):
    """What another machine has of the remote: it must be able to bring every record that it sees."""
    store = machine(name, remote)
    records = store.tier.take_all()
    store.tier.bring_all(records)
    assert all(store.artifacts.is_whole(record) for record in records)
    assert not store.tier.counts.refused
    store.leave()
    return records


@pytest.mark.slow
@pytest.mark.sample(1)
def test_a_push_may_be_killed_at_any_moment(work, machine, remote, tmp_path, request):
    store = machine("a", remote, writes=True)
    fill(store)
    chance = random.Random(os.environ["RECIPE_SAMPLE_SEED"])
    seen = 0
    for number in range(100 if request.config.getoption("--whole") else 4):
        work("push", store.root, after=chance.random() * 0.8)
        if number % 10 == 0:
            now = len(whole_records(machine, remote, f"reader{number}"))
            assert now >= seen, "what was pushed stays"
            seen = now
    work("push", store.root)
    assert len(whole_records(machine, remote, "last")) == SMALL + 1


@pytest.mark.slow
@pytest.mark.sample(1)
def test_a_pull_may_be_killed_at_any_moment(work, machine, remote, tmp_path, request):
    store = machine("a", remote, writes=True)
    fill(store)
    work("push", store.root)
    root = tmp_path / "puller" / "cache"
    chance = random.Random(os.environ["RECIPE_SAMPLE_SEED"])
    for number in range(100 if request.config.getoption("--whole") else 4):
        work("pull", root, after=chance.random() * 0.8)
        if number % 10 == 0:
            assert not verification.verify(root, parallel=2).damages
    work("pull", root)
    puller = machine("puller", remote)
    assert sum(puller.artifacts.is_whole(record) for record in puller.records()) == SMALL + 1
    assert not verification.verify(Path(root), parallel=2).damages
    assert not list(puller.layout.incoming.iterdir())
