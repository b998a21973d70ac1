"""Many small artifacts and a large one, pushed and pulled by processes that are killed at random until all is there."""

import contextlib
import itertools
import os
import random
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from remote_transfers import SCRIPT
from stores import put

from engine import digest
from engine.key import digest_of
from engine.store import output, verification
from engine.store.remote import envelope, statement
from engine.store.remote.objects import RECORDS

PIECE = 1 << 20
BENCHMARK = Path(__file__).parents[3] / "benchmarks" / "remote.py"


@pytest.fixture
def size(request):
    """The number of small artifacts, the MiB of the large one, the kills of each direction, the longest life."""
    return (10_000, 3 << 10, 50, 2.0) if request.config.getoption("--whole") else (150, 20, 2, 0.4)


@pytest.fixture
def remotes(seaweed, remote_at, tmp_path):
    """Yield one empty remote after another."""
    return (remote_at(seaweed.url(f"{tmp_path.name}-{n}"), seaweed.environ("writer")) for n in itertools.count())


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
    from cryptography.hazmat.primitives import serialization as form

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


def transfers(places, kills, longest, chance):
    """Yield (place, seconds or None) for each attempt, and take whether it was killed: `kills` times in all.

    An attempt that ends by itself has completed a place; the kills that are left happen at the next place. The last
    attempt has all the time that it needs.
    """
    place = next(places)
    while kills:
        killed = yield place, chance.random() * longest
        kills -= killed
        place = place if killed else next(places)
    while (yield place, None):
        pass


def objects(remote):
    """Return the store of the raw client, and the sizes of all objects of the remote."""
    import obstore
    from obstore.store import from_url

    config = {key.lower(): value for key, value in remote.writer.items()}
    store = from_url(remote.url, config=config, client_options={"allow_http": True})
    return store, {meta["path"]: meta["size"] for batch in obstore.list(store) for meta in batch}


def whole_records(remote, chance):
    """Return the number of records at the remote, after a look at some: each is whole, and so are its blobs."""
    import obstore

    store, sizes = objects(remote)
    records = [name for name in sizes if name.startswith(RECORDS)]
    for name in chance.sample(records, min(200, len(records))):
        read = statement.read(envelope.decode(bytes(obstore.get(store, name).bytes())).payload)
        for blob in (blob for file in read.files.values() for blob in file.blobs):
            assert blob.inline is not None or sizes[blob.name] == blob.stored
    return len(records)


def every_digest(root):
    return {name: digest.of_file(root / "artifacts" / name) for name in digest.walk(root / "artifacts")}


def attempts(transfer, attempt):
    """Make each attempt of a transfer; yield the place, and whether the attempt was killed."""
    place, after = next(transfer)
    with contextlib.suppress(StopIteration):
        while True:
            killed = attempt(place, after)
            yield place, killed
            place, after = transfer.send(killed)


@pytest.mark.slow
def test_all_arrives_although_both_sides_are_killed_at_random(run, machine, remotes, size, tmp_path):
    small, mib, kills, longest = size
    chance = random.Random(os.environ["RECIPE_SAMPLE_SEED"])
    first = next(remotes)
    store = machine("a", first, writes=True)
    fill(store, small, mib)
    clock = time.monotonic()

    def tell(what, number, now):
        print(f"{what}: attempt {number} after {time.monotonic() - clock:.0f} s, {now} records", flush=True)

    seen = dict.fromkeys([first.url], 0)
    pushes = transfers(itertools.chain([first], remotes), kills, longest, chance)
    for number, (remote, killed) in enumerate(attempts(pushes, lambda to, after: run("push", store.root, to, after))):
        if number % 5 == 0 or not killed:
            now = whole_records(remote, chance)
            tell("push", number + 1, now)
            assert now >= seen.get(remote.url, 0), "what was pushed stays"
            assert killed or now == small + 1
            seen[remote.url] = now
    assert number + 1 > kills

    roots = (tmp_path / f"b{n}" / "cache" for n in itertools.count())
    pulls = transfers(roots, kills, longest, chance)
    for number, (root, killed) in enumerate(attempts(pulls, lambda to, after: run("pull", to, remote, after))):
        if number % 10 == 0 or not killed:
            assert not verification.verify(root, parallel=2).damages
            tell("pull", number + 1, len(list((root / "records").iterdir())))
        if not killed:
            assert not list((root / "incoming").iterdir())
            assert every_digest(root) == every_digest(store.root)
            shutil.rmtree(root)
    assert number + 1 > kills


@pytest.mark.slow
def test_the_remote_is_compared_with_a_raw_client(size, seaweed, tmp_path):
    seaweed.url(tmp_path.name)  # skips where SeaweedFS is missing; the benchmark starts a server of its own
    small, mib, *_ = size
    small, mib = (small, mib) if mib > 1024 else (50, 1)
    command = [sys.executable, BENCHMARK, "--small", str(small), "--mib", str(mib), "--runs", "1"]
    text = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    print(text)
    assert text.count("| push |") == text.count("| pull |") == 3  # small, large, and all of it
