"""A publisher is killed at random moments while a reader polls: no half version is ever loadable."""

import asyncio
import os
import random
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

from published import half_versions, write

from engine.publishing import publisher
from engine.publishing.repository import ModelRepository

PROGRAM = Path(__file__).parents[1] / "support" / "publish_once.py"
_MANY, _FEW = 100, 6
_MOST = 10
"""The greatest number of publications per kill: the others end before their kill."""
_SIZE = 300_000


class Reader(threading.Thread):
    """Polls the repository as a server does, until `stop` is set."""

    def __init__(self, url):
        super().__init__(daemon=True)
        self.looks, self.wrong, self.stop = 0, [], threading.Event()
        self._repository = ModelRepository(url, writes=False)

    def run(self):
        with asyncio.Runner() as runner:
            while not self.stop.is_set():
                self.wrong += half_versions(
                    lambda name: runner.run(self._repository.read(name)),
                    lambda: set(runner.run(self._repository.listing()).entries),
                )
                self.looks += 1


def begun(folder, url):
    process = subprocess.Popen(
        [sys.executable, PROGRAM, folder, url], stdout=subprocess.PIPE, text=True, env=dict(os.environ)
    )
    assert process.stdout.readline() == "begins\n"
    return process


def test_no_kill_leaves_a_half_version_that_loads(url, tmp_path, request):
    kills = _MANY if request.config.getoption("whole") else _FEW
    chance = random.Random(17)
    write(tmp_path / "first", add=1, size=_SIZE)
    process = begun(tmp_path / "first", url)
    start = time.monotonic()
    assert process.communicate()[0] == "published 1\n"
    seconds = time.monotonic() - start
    ModelRepository(url, writes=True)  # the reader's folder is there
    reader = Reader(url)
    reader.start()
    killed = started = 0
    while killed < kills:
        folder = tmp_path / f"package-{started}"
        write(folder, add=2 + started, size=_SIZE)
        started += 1
        process = begun(folder, url)
        try:
            process.wait(chance.uniform(0, seconds))
        except subprocess.TimeoutExpired:
            process.kill()
        process.communicate()
        assert process.returncode in {0, -signal.SIGKILL}
        killed += process.returncode != 0
        assert started < _MOST * kills
    write(tmp_path / "last", add=2 + started, size=_SIZE)
    assert begun(tmp_path / "last", url).communicate()[0].startswith("published ")
    reader.stop.set()
    reader.join(timeout=60)
    assert reader.wrong == []
    assert reader.looks > kills // 2
    print(f"{killed} kills in {started} publications, {reader.looks} looks")
    rows = asyncio.run(publisher.versions(ModelRepository(url, writes=False)))
    assert [row.version for row in rows if row.served] == [max(row.version for row in rows)]
    assert all(row.decision is not None and (row.whole or not row.decision.complete) for row in rows)
    abandoned = [row.version for row in rows if row.decision and not row.decision.complete]
    left = asyncio.run(ModelRepository(url, writes=False).listing()).entries
    assert not [name for name in left for version in abandoned if name.split("/")[1:2] == [str(version)]]
