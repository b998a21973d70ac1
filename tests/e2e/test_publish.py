"""A real Triton server polls a repository while packages are published into it."""

import asyncio
import json
import threading
import time
import urllib.error
import urllib.request
from dataclasses import replace

import pytest
from published import SERVICE, write

from engine import server as servers
from engine.publishing.publisher import Publisher, PublishWaits
from engine.publishing.repository import ModelRepository
from engine.server import packaged
from engine.server.packaged import Packaged

pytestmark = pytest.mark.slow
_PATIENCE = 60


class Polling(Packaged):
    """The pip-installed server, which looks at its repository every second."""

    def launch(self, place):
        started = super().launch(place)
        polls = ("--model-control-mode=poll", "--repository-poll-secs=1")
        return replace(started, command=(*started.command, *polls))


def requested(url, body=None):
    data = None if body is None else json.dumps(body).encode()
    with urllib.request.urlopen(urllib.request.Request(url, data), timeout=10) as answer:
        return json.load(answer)


def answer(server):
    """Return what the ensemble of two models adds to 0, and which version of the package answers."""
    body = {"inputs": [{"name": "x", "datatype": "FP32", "shape": [1, 4], "data": [0, 0, 0, 0]}]}
    reply = requested(f"http://{server.http}/v2/models/{SERVICE}/infer", body)
    return reply["outputs"][0]["data"][0], int(reply["model_version"])


def test_a_polling_server_answers_with_whole_versions_only(environment, tmp_path):
    repository = tmp_path / "models"

    def publish(add):
        package = write(tmp_path / f"package-{add}-{time.monotonic_ns()}", add=add)
        return asyncio.run(
            Publisher(ModelRepository(f"file://{repository}", writes=True), package, waits=PublishWaits()).publish()
        )

    publish(1)
    answers, stop = [], threading.Event()
    installation = Polling("pip", packaged.VERSION, "for tests", environment=environment)
    with servers.start(repository, installation=installation, patience=60.0) as server:

        def ask():
            while not stop.is_set():
                try:
                    answers.append(answer(server))
                except (urllib.error.URLError, OSError) as error:
                    answers.append(str(error))

        client = threading.Thread(target=ask)
        client.start()
        for add, version in ((2, 2), (3, 3), (1, 1)):
            assert publish(add).version == version
            end = time.monotonic() + _PATIENCE
            while (answers or [None])[-1] != (2 * add, version):
                assert time.monotonic() < end, (answers[-3:], server.last_words())
                time.sleep(0.1)
        stop.set()
        client.join()
        config = requested(f"http://{server.http}/v2/models/{SERVICE}/config")
    assert set(answers) == {(2.0, 1), (4.0, 2), (6.0, 3)}
    assert config["parameters"]["recipe_version"]["string_value"] == "1"
    assert config["parameters"]["recipe_key"]["string_value"] == "key-1"
