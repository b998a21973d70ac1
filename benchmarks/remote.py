"""The speed of a remote beside a raw client that moves the same objects: many small artifacts, and a large one."""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import os
import random
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import recipe_program as program
from timing import machine, table, times

sys.path[:0] = [str(program.ROOT), str(program.ROOT / "tests" / "support")]

PIECE = 1 << 20
IN_MEMORY, TO_FILES = "raw get, into memory", "raw get, into files"


@dataclass
class Took:
    """The seconds and the seconds of CPU of this process, per round."""

    seconds: list[float] = field(default_factory=list)
    cpu: list[float] = field(default_factory=list)


@dataclass(frozen=True)
class Server:
    """A remote: a URL, to which names are added, and the variables of its credentials."""

    url: str
    environ: Mapping[str, str]


def main() -> None:
    """Measure in turns and print the tables. All clients run in this process; the server has its own."""
    # Nothing is removed between the rounds: after it, some file systems make new files twenty times slower.
    options = _options()
    os.environ["RECIPE_TRUST_CACHE"] = "1"
    os.environ["XDG_STATE_HOME"] = os.environ["XDG_CONFIG_HOME"] = tempfile.mkdtemp()
    with tempfile.TemporaryDirectory(dir=options.folder) as scratch, _server(options.server, Path(scratch)) as server:
        measured = []
        if options.small:
            measured.append(_measure(Path(scratch) / "small", server, options, small=options.small))
        if options.mib:
            measured.append(_measure(Path(scratch) / "large", server, options, mib=options.mib))
    if len(measured) > 1:
        both = {name: Took([sum(seconds) for seconds in zip(*(each[name].seconds for each in measured), strict=True)])
                for name in measured[0]}  # fmt: skip
        print("All of it\n")
        print(table(("", "median", "of the raw client"), [(row[0], row[1], row[3]) for row in _rows(both)]) + "\n")
    print(machine())


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--small", type=int, default=1000, help="small artifacts: 300 bytes in one file each (1000)")
    parser.add_argument("--mib", type=int, default=256, help="size of the large artifact in MiB (256)")
    parser.add_argument("--server", choices=("folder", "seaweedfs"), default="seaweedfs", help="(seaweedfs)")
    parser.add_argument("--runs", type=int, default=5, help="rounds (5)")
    parser.add_argument("--folder", type=Path, help="folder for all files (the system's temporary folder)")
    parser.add_argument("--profile", action="store_true", help="print where the push and the pull spend their CPU time")
    return parser.parse_args()


def _measure(
    folder: Path, server: Server, options: argparse.Namespace, *, small: int = 0, mib: int = 0
) -> dict[str, Took]:
    """Print the table of some artifacts, and return the times of each round."""
    from engine.store.store import Store

    folder.mkdir()
    pusher = Store(folder / "pusher")
    _fill(pusher, small, mib)
    rounds = {name: Took() for name in ("push", "raw put", "pull", IN_MEMORY, TO_FILES)}
    for number in range(options.runs):
        place = f"{folder.name}{number}"
        steps = _steps(folder, pusher, server, place)
        # The objects of the push are what the raw client puts, so the push is first; then the order changes.
        _timed(rounds["push"], steps["push"], profiled=options.profile and number == 0)
        content = _content(server, place)
        raw = {"raw put": lambda c=content, p=place: asyncio.run(_put(_raw_store(server, f"{p}-raw"), c))}
        reads = {name: steps[name] for name in ("pull", IN_MEMORY, TO_FILES)}
        _timed(rounds["raw put"], raw["raw put"])
        for name in sorted(reads, reverse=bool(number % 2)):
            _timed(rounds[name], reads[name], profiled=options.profile and number == 0 and name == "pull")
    count = sum(len(each) for each in content.values())
    what = f"{small} small artifacts" if small else f"one artifact of {mib} MiB"
    print(f"{what}: {len(content)} objects with {count} bytes\n")
    print(table(("", "median", "CPU", "of the raw client"), _rows(rounds)) + "\n")
    return rounds


def _rows(rounds: Mapping[str, Took]) -> Iterator[Sequence[str]]:
    for name, took in rounds.items():
        bases = {"push": ["raw put"], "pull": [IN_MEMORY, TO_FILES]}.get(name, [])
        ratios = [
            statistics.median(base / own for own, base in zip(took.seconds, rounds[each].seconds, strict=True))
            for each in bases
        ]
        text = ", ".join(times(ratio) for ratio in ratios)
        busy = f"{statistics.median(took.cpu):.3f} s" if took.cpu else ""
        yield name, f"{statistics.median(took.seconds):.3f} s", busy, text


def _timed(took: Took, call: Callable[[], object], *, profiled: bool = False) -> None:
    os.sync()  # else the disk is still at the files of the step before, and the first step of a round pays for them
    started, cpu = time.perf_counter(), time.process_time()
    if profiled:
        _profiled(call)
    else:
        call()
    took.seconds.append(time.perf_counter() - started)
    took.cpu.append(time.process_time() - cpu)


def _profiled(call: Callable[[], object]) -> None:
    """Print the functions with the most time of their own, over all threads."""
    import cProfile
    import pstats
    import threading

    profiles = []
    run = threading.Thread.run

    def profiled_run(thread: threading.Thread) -> None:
        profile = cProfile.Profile(time.thread_time)
        profiles.append(profile)
        profile.runcall(run, thread)

    threading.Thread.run = profiled_run  # type: ignore[method-assign]
    try:
        call()
    finally:
        threading.Thread.run = run  # type: ignore[method-assign]
    stats = None
    for profile in profiles:
        with contextlib.suppress(TypeError):
            stats = pstats.Stats(profile) if stats is None else stats.add(profile)
    if stats is not None:
        stats.sort_stats("tottime").print_stats(45)


def _fill(store: Any, small: int, mib: int) -> None:
    from engine import key as keys
    from engine.store import output

    def put(name: str, write: Callable[[Path], object]) -> None:
        key = {"code": "c" * 32, "facts.cpu": "x86-64-v3", "inputs.model": name * 4, "options.n": name}
        with store.presence.workplace() as folder:
            out = folder / "out"
            out.mkdir()
            write(out / "content")
            files = output.take(out)
            bound = output.binding(step="steps:Step", key=keys.digest_of(key), tree=output.tree(files), report={"n": 1})
            store.commit(
                key, out, files, report={"n": 1}, seconds=0.5, peak_bytes=7, machine={"os": "Linux"}, bound=bound,
                job="small", step="steps:Step",
            )  # fmt: skip

    chance = random.Random(1)
    for number in range(small):
        put(str(number), lambda path: path.write_bytes(chance.randbytes(150).hex().encode()))
    if mib:
        put("large", lambda path: _write_large(path, mib, chance))
    store.leave()


def _write_large(path: Path, mib: int, chance: random.Random) -> None:
    with path.open("wb") as file:
        for _ in range(mib):
            file.write(chance.randbytes(PIECE))


def _steps(folder: Path, pusher: Any, server: Server, place: str) -> dict[str, Callable[[], object]]:
    from engine.store.remote import keys
    from engine.store.remote.settings import RemoteSettings
    from engine.store.remote.tier import Tier
    from engine.store.remote.trust import Trust, TrustedKey
    from engine.store.store import Store

    scratch = folder / place
    scratch.mkdir()
    pair = keys.generate(scratch / "signing.key")
    trust = Trust((TrustedKey(pair.public),))
    settings = RemoteSettings(f"{server.url}/{place}", {**os.environ, **server.environ}, trust, pair, pushes=True)

    def push() -> None:
        tier = Tier(pusher, settings, brief=False)
        for record in pusher.records():
            tier.push(record)
        error = tier.wait()
        tier.close()
        if error is not None:
            raise error

    def pull() -> None:
        store = Store(scratch / "puller")
        store.tier = tier = Tier(store, settings, brief=False)
        records = tier.take_all()
        tier.bring_all(records)
        tier.close()
        store.leave()
        if not records or tier.trouble or any(store.is_away(record) for record in records):
            raise SystemExit(f"not all records came: {tier.trouble}")

    def get(name: str) -> Callable[[], object]:
        files = None
        if name == TO_FILES:
            files = scratch / "raw"
            files.mkdir()
        return lambda: asyncio.run(_get(_raw_store(server, place), files))

    return {"push": push, "pull": pull, IN_MEMORY: get(IN_MEMORY), TO_FILES: get(TO_FILES)}


# -- the raw client ------------------------------------------------------------------------------------------


def _raw_store(server: Server, place: str) -> Any:
    from obstore.store import LocalStore, from_url

    if server.url.startswith("file:"):
        return LocalStore(f"{server.url.removeprefix('file://')}/{place}", mkdir=True)
    config: Any = {name.lower(): value for name, value in server.environ.items()}
    return from_url(f"{server.url}/{place}", config=config, client_options={"allow_http": True})


def _content(server: Server, place: str) -> dict[str, bytes]:
    """Return the objects of a push by name."""
    import obstore

    store = _raw_store(server, place)
    names = [meta["path"] for batch in obstore.list(store) for meta in batch]
    return {name: bytes(obstore.get(store, name).bytes()) for name in names}


async def _put(store: Any, content: Mapping[str, bytes]) -> None:
    """Put objects as a push does: a record never replaces another one."""
    import obstore

    from engine.store.remote.objects import is_record_name

    async def one(name: str, data: bytes) -> None:
        mode: Any = "create" if is_record_name(name) else "overwrite"
        await obstore.put_async(store, name, data, mode=mode, use_multipart=False)

    await _each((lambda name=name, data=data: one(name, data)) for name, data in content.items())


async def _get(store: Any, folder: Path | None) -> None:
    """Get all objects that a listing has; with a folder, each is written to a file of its own."""
    import obstore

    async def one(name: str) -> None:
        data = await (await obstore.get_async(store, name)).bytes_async()
        if folder is not None:
            await asyncio.to_thread((folder / name.replace("/", "-")).write_bytes, data)

    listed = [meta["path"] async for batch in obstore.list(store) for meta in batch]
    await _each((lambda name=name: one(name)) for name in listed)


async def _each(calls: Any) -> None:
    """Run calls with as many at a time as the remote's client has."""
    from engine.store.remote.background import AT_ONCE

    calls = iter(calls)

    async def worker() -> None:
        for call in calls:
            await call()

    async with asyncio.TaskGroup() as group:
        for _ in range(AT_ONCE):
            group.create_task(worker())


@contextlib.contextmanager
def _server(kind: str, scratch: Path) -> Iterator[Server]:
    if kind == "folder":
        yield Server(f"file://{scratch}/remote", {})
        return
    from remote_servers import Seaweed

    folder = scratch / "server"
    folder.mkdir()
    server = Seaweed(folder)
    try:
        yield Server(server.url("benchmark"), server.environ("writer"))
    finally:
        server.stop()


if __name__ == "__main__":
    main()
