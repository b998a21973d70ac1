"""A real Triton server polls a repository while packages are published into it."""

import asyncio
import contextlib
import json
import shutil
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

import pytest
import released
from program import Program
from published import SERVICE, write

from engine import server as servers
from engine.publishing.publisher import Publisher, PublishWaits
from engine.publishing.repository import ModelRepository
from engine.server import pip_server
from engine.server.pip_server import Packaged

pytestmark = [pytest.mark.slow, pytest.mark.whole("tests/publishing publishes to folders and buckets")]
_PATIENCE = 60
_RATE, _SECONDS = 50, 60
"""Requests a second, and for how many seconds."""


@dataclass(frozen=True)
class Polling(Packaged):
    """The pip-installed server, which looks at the repository `url` every second."""

    url: str = ""
    variables: Mapping[str, str] = field(default_factory=dict)

    def launch(self, place):
        started = super().launch(place)
        option = "--model-repository="
        command = [f"{option}{self.url}" if word.startswith(option) else word for word in started.command]
        polls = ("--model-control-mode=poll", "--repository-poll-secs=1")
        return replace(started, command=(*command, *polls), environment={**started.environment, **self.variables})


@dataclass(frozen=True)
class Repository:
    """A model repository: how a publisher names it, how Triton names it, and the variables of both."""

    url: str
    of_triton: str
    variables: Mapping[str, str]


@pytest.fixture(params=["folder", "s3"])
def repository(request, tmp_path, monkeypatch):
    if request.param == "folder":
        return Repository(f"file://{tmp_path}/models", f"{tmp_path}/models", {})
    server = request.getfixturevalue("seaweed")
    # Without this variable Triton's client of S3 looks for the metadata service of Amazon's machines.
    variables = server.environ("writer") | {"AWS_EC2_METADATA_DISABLED": "true", "AWS_DEFAULT_REGION": "us-east-1"}
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    url = server.url(tmp_path.name)
    return Repository(url, f"s3://http://127.0.0.1:{server.port}/{url.removeprefix('s3://')}", variables)


def requested(url, body=None):
    data = None if body is None else json.dumps(body).encode()
    with urllib.request.urlopen(urllib.request.Request(url, data), timeout=10) as answer:
        return json.load(answer)


def answer(server):
    """Return what the ensemble of two models adds to 0, and which version of the package answers."""
    body = {"inputs": [{"name": "x", "datatype": "FP32", "shape": [1, 4], "data": [0, 0, 0, 0]}]}
    reply = requested(f"http://{server.http}/v2/models/{SERVICE}/infer", body)
    return reply["outputs"][0]["data"][0], int(reply["model_version"])


def polling(environment, repository, tmp_path):
    """Start a server that polls a repository."""
    installation = Polling(
        "pip", pip_server.VERSION, "for tests", environment=environment, url=repository.of_triton,
        variables=repository.variables,
    )  # fmt: skip
    (tmp_path / "models").mkdir(exist_ok=True)
    return servers.start(tmp_path / "models", installation=installation, patience=60.0)


def test_a_polling_server_answers_with_whole_versions_only(environment, repository, tmp_path):
    def publish(add):
        package = write(tmp_path / f"package-{add}-{time.monotonic_ns()}", add=add)
        return asyncio.run(
            Publisher(ModelRepository(repository.url, writes=True), package, waits=PublishWaits()).publish()
        )

    publish(1)
    answers, stop = [], threading.Event()
    with polling(environment, repository, tmp_path) as server:

        def ask():
            while not stop.is_set():
                try:
                    answers.append(answer(server))
                except urllib.error.HTTPError as error:
                    answers.append(f"{error}: {error.read().decode()}")
                except OSError as error:
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


def test_releases_roll_forward_and_back_under_load_without_a_failed_request(environment, repository, tmp_path):
    """The releases come from a remote, into an empty folder: nothing is planned or built, and no key is needed."""
    recipe = Program(tmp_path / "ci")
    recipe.environment |= {"RECIPE_REMOTE": f"file://{tmp_path}/remote", "XDG_CONFIG_HOME": str(tmp_path / "config")}
    records = [released.put(tmp_path / "ci" / "cache", add) for add in (1, 2)]
    recipe("cache", "keygen", expect=0)
    for record in records:
        recipe("publish", "--release", record.digest, repository.url, expect=0)
    shutil.rmtree(tmp_path / "ci" / "cache")
    recipe.environment["RECIPE_PUSH"] = "0"
    with polling(environment, repository, tmp_path) as server:
        load = recipe.start(
            "loadtest", f"http://{server.http}", "--model", SERVICE, "--input", "x=[0, 0, 0, 0]", "--rate", str(_RATE),
            "--duration", str(_SECONDS), "--warm-up", "0.5", "--max-errors", "0", "--json",
        )  # fmt: skip
        turns = 0
        while load.poll() is None:
            version = 1 + turns % 2
            done = recipe("publish", "--release", records[version - 1].digest[:8], repository.url, expect=0)
            assert f"version {version} is this package already; it is served" in done.stdout
            end = time.monotonic() + _PATIENCE
            with contextlib.suppress(OSError):
                while answer(server) != (2.0 * version, version):
                    assert time.monotonic() < end, server.last_words()
                    time.sleep(0.1)
            turns += 1
        figures = json.loads(load.communicate()[0])
    assert load.returncode == 0, figures
    assert figures["errors"]["count"] == 0
    assert figures["requests"] > _RATE * _SECONDS * 0.9
    assert turns > 2, turns
    print(f"{figures['requests']} requests at {_RATE} a second, {turns} releases, no failed request")
