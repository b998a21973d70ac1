"""Many small artifacts and a large one, pushed and pulled by processes that are killed at random until all is there."""

import asyncio
import contextlib
import itertools
import os
import random
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from cryptography.hazmat.primitives import serialization as form
from stores import put

from engine import digest
from engine.key import digest_of
from engine.store import output, verification
from engine.store.remote import envelope, statement
from engine.store.remote.objects import RECORDS
from engine.store.remote.remotes import remote_of
from engine.store.remote.statement import LARGEST_RECORD

PIECE = 1 << 20
BENCHMARK = Path(__file__).parents[3] / "benchmarks" / "remote.py"
SCRIPT = """
import os, sys
from pathlib import Path
from engine.store.remote import keys
from engine.store.remote.settings import RemoteSettings
from engine.store.remote.tier import Tier
from engine.store.remote.trust import Trust, TrustedKey
from engine.store.store import Store

what, root, url, key = sys.argv[1:]
pair = keys.signer({}, Path(key))
store = Store(Path(root))
trust = Trust((TrustedKey(pair.public),))
store.tier = tier = Tier(store, RemoteSettings(url, os.environ, trust, pair, pushes=True), brief=False)
print("begun", flush=True)
if what == "push":
    for record in store.records():
        tier.push(record)
    error = tier.wait()
    if error:
        sys.exit(str(error))
else:
    tier.bring_all(tier.take_all())
os._exit(0)  # as the program does: a thread of obstore that comes back during Python's clean-up aborts the process
"""
"""A process that pushes a whole store to a remote, or pulls a whole remote into a store."""


@pytest.fixture
def size(request):
    """The number of small artifacts, the MiB of the large one, the kills of each direction, the longest life."""
    return (10_000, 3 << 10, 50, 2.0) if request.config.getoption("--whole") else (80, 20, 2, 0.4)


def fill(store, small, mib):
    for number in range(small):
        put(store, {"code": "c", "options.n": str(number)}, {"f": str(number) * 60, "g/h": ""})
    chance = random.Random(1)
    key = {"code": "c", "options.n": "large"}
    with store.presence.workplace() as folder:
        out = folder / "out"
        out.mkdir()
        with (out / "weights").open("wb") as file:
            for _ in range(mib):
                file.write(chance.randbytes(PIECE))
        files = output.take(out)
        bound = output.binding(step="", key=digest_of(key), tree=output.tree(files), report={})
        store.commit(key, out, files, report={}, seconds=1.0, peak_bytes=7, machine={}, bound=bound)
    store.leave()


@pytest.fixture
def run(pair, tmp_path):
    """Push or pull in a process of its own; with `after`, it is killed after so many seconds. Return whether it was."""
    key = tmp_path / "pair"
    key.write_bytes(pair.key.private_bytes(form.Encoding.PEM, form.PrivateFormat.PKCS8, form.NoEncryption()))

    def run(what, root, remote, after):
        command = [sys.executable, "-c", SCRIPT, what, str(root), remote.url, str(key)]
        with subprocess.Popen(command, stdout=subprocess.PIPE, env=os.environ | remote.writer) as process:
            assert process.stdout.readline() == b"begun\n"
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(after)
            process.kill()
        assert process.returncode in {0, -signal.SIGKILL}
        return process.returncode != 0

    return run


def attempts(places, kills, longest, chance, attempt):
    """Make attempts of a transfer until `kills` were killed; yield each one's place, and whether it was killed.

    An attempt that ends by itself has completed a place; the kills that are left happen at the next place. The last
    attempt has all the time that it needs.
    """
    place = next(places)
    while True:
        left = kills
        killed = attempt(place, chance.random() * longest if left else None)
        kills -= killed
        yield place, killed
        if not killed and not left:
            return
        place = place if killed else next(places)


def whole_records(remote, chance):
    """Return the number of records at the remote, after a look at some: each is whole, and so are its blobs."""
    place = remote_of(remote.url, environ=remote.reader, writes=False)

    async def look():
        records = [entry.name async for entry in place.list(RECORDS)]
        for name in chance.sample(records, min(200, len(records))):
            raw = await place.read(name, most=LARGEST_RECORD)
            for blob in statement.read(envelope.decode(raw).payload).stored_blobs:
                assert (await place.entry(blob.name)).size == blob.stored
        return len(records)

    return asyncio.run(look())


def every_digest(root):
    return {name: digest.of_file(root / "artifacts" / name) for name in digest.walk(root / "artifacts")}


@pytest.mark.slow
@pytest.mark.sample(1)
def test_all_arrives_although_both_sides_are_killed_at_random(run, machine, listings, size, tmp_path):
    small, mib, kills, longest = size
    chance = random.Random(os.environ["RECIPE_SAMPLE_SEED"])
    first = next(listings)
    store = machine("a", first, writes=True)
    fill(store, small, mib)

    seen = {}
    pushes = attempts(
        itertools.chain([first], listings), kills, longest, chance, lambda to, after: run("push", store.root, to, after)
    )
    for number, (remote, killed) in enumerate(pushes):
        if number % 5 == 0 or not killed:
            now = whole_records(remote, chance)
            print(f"push: attempt {number + 1}, {now} records", flush=True)
            assert now >= seen.get(remote.url, 0), "what was pushed stays"
            assert killed or now == small + 1
            seen[remote.url] = now
    assert number + 1 > kills

    roots = (tmp_path / f"b{n}" / "cache" for n in itertools.count())
    pulls = attempts(roots, kills, longest, chance, lambda to, after: run("pull", to, remote, after))
    for number, (root, killed) in enumerate(pulls):
        if number % 10 == 0 or not killed:
            assert not verification.verify(root, parallel=2).damages
            print(f"pull: attempt {number + 1}, {len(list((root / 'records').iterdir()))} records", flush=True)
        if not killed:
            assert not list((root / "incoming").iterdir())
            assert every_digest(root) == every_digest(store.root)
            shutil.rmtree(root)
    assert number + 1 > kills


@pytest.mark.slow
@pytest.mark.whole("test_all_arrives_although_both_sides_are_killed_at_random moves records, and this runs a benchmark")
def test_the_remote_is_compared_with_a_raw_client(size, seaweed, tmp_path):
    seaweed.url(tmp_path.name)  # skips where SeaweedFS is missing; the benchmark starts a server of its own
    small, mib, *_ = size
    small, mib = (small, mib) if mib > 1024 else (50, 1)
    command = [sys.executable, BENCHMARK, "--small", str(small), "--mib", str(mib), "--runs", "1"]
    text = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    print(text)
    assert text.count("| push |") == text.count("| pull |") == 3  # small, large, and all of it
