"""What mutations do to a store and to a build that is under way."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable

from mutations.mutation import Action
from mutations.workplace import Workplace


def stored(job: str, file: str, act: Callable[[str], Action]) -> Action:
    """Do something to a file of a job's artifact."""
    return lambda place: act(f"{place.ended[job]['path']}/{file}")(place)


def artifact(job: str, act: Callable[[str], Action]) -> Action:
    """Do something to the whole artifact of a job."""
    return lambda place: act(place.ended[job]["path"])(place)


def record(job: str, act: Callable[[str], Action]) -> Action:
    """Do something to the record of a job."""
    return lambda place: act(f"cache/records/{place.ended[job]['key']}.json")(place)


def killed(*options: str, at: str) -> Action:
    """Begin a build, and kill it with all that it started once a job has begun."""

    def act(place: Workplace) -> None:
        words = [sys.executable, "-m", "engine", "build", place.recipe, *place.options, *options, "--json"]
        running = subprocess.Popen(
            words, cwd=place.folder, env=place.environment, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
            text=True, start_new_session=True,
        )  # fmt: skip
        assert running.stdout is not None
        for line in running.stdout:
            event = json.loads(line)
            if event["event"] == "start" and event["job"] == at:
                break
        os.killpg(running.pid, signal.SIGKILL)
        running.wait()
        running.stdout.close()

    return act
