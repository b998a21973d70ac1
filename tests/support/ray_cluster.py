"""A real Ray cluster on the loopback: a head without CPUs for jobs, and nodes with environments of their own."""

import os
import re
import secrets
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import pytest
import user_caches
from process_cluster import MEMORY

from engine.system import processes

SUPPORT = Path(__file__).parent
PYTHONPATH = f"{SUPPORT / 'ray_start'}:{SUPPORT}:{SUPPORT.parent.parent}"
"""Where the processes of a node find the program and the steps of tests."""
_START_SECONDS = 240
_TOKEN = secrets.token_hex(32)
"""The token of every cluster: a process that has connected to one keeps its token for the next."""
_LOWEST_PORT, _HIGHEST_PORT = 20_000, 30_000  # Ray gives its workers the ports from 10,002 to 19,999

_LISTEN = "dashboard-agent-listen-port"
_AGENT_PORTS = ("dashboard-agent-grpc-port", "metrics-export-port", "runtime-env-agent-port", _LISTEN)
"""The ports of a node's agents: a node that must wait for an agent to choose its port dies after 15 seconds, and on a
busy machine the imports of an agent take longer."""
_QUICK = {"RAY_health_check_period_ms": "500", "RAY_health_check_failure_threshold": "3"}
_PAGE = SUPPORT.parent.parent / "docs" / "cluster.md"
_NODE_ID = re.compile(r"Setting node ID node_id=([0-9a-f]+)")


def program():
    """Return Ray's program, or skip the test. To import Ray instead would fix the variables of that moment."""
    ray = Path(sys.executable).with_name("ray")
    if not ray.exists():
        pytest.skip("Ray is not installed (the extra `dev-cluster`)")
    return ray


def documented_settings():
    """Return the settings with which the page starts a head, as JSON."""
    [settings] = re.findall(r"--system-config '(.*)'", _PAGE.read_text())
    return settings


class RayCluster:
    """Starts `ray start` for the head and for each node, and ends them with all that they have started."""

    def __init__(self, *, environment=None, settings=None):
        """With `settings`, JSON for `--system-config`, the head has these in the place of quick health checks."""
        program()
        self.folder = Path(tempfile.mkdtemp(prefix="ray", dir="/tmp"))  # a socket's path has at most 107 bytes
        self.environment = {
            **(environment or os.environ),
            "RAY_AUTH_MODE": "token", "RAY_AUTH_TOKEN": _TOKEN, "RAY_USAGE_STATS_ENABLED": "0",
            **(_QUICK if settings is None else {}),
            "RAY_agent_register_timeout_ms": "300000", "RAY_worker_register_timeout_seconds": "300",
            "PYTHONPATH": PYTHONPATH,
            "RECIPE_TRUST": "none", "RECIPE_TRUST_CACHE": "1",
            "XDG_STATE_HOME": str(self.folder / "state"),
            "XDG_CACHE_HOME": user_caches.with_bytecode(self.folder / "user"),
            "XDG_CONFIG_HOME": str(self.folder / "config"),
        }  # fmt: skip
        self.port, self.client_port, *_ = ports(2)
        self.address = f"ray://127.0.0.1:{self.client_port}"
        self.nodes = {}
        self.gcs = f"{socket.gethostbyname(socket.gethostname())}:{self.port}"
        self._python = sys.executable
        words = [
            "--head", f"--port={self.port}", "--num-cpus=0", f"--ray-client-server-port={self.client_port}",
            "--include-dashboard=false", f"--temp-dir={self.folder}",
            *([] if settings is None else [f"--system-config={settings}"]),
        ]  # fmt: skip
        try:
            self._start("head", self._python, self.environment, words)
            self._until(lambda: _listens(self.client_port), "the head does not listen")
        except BaseException:
            self.close()
            raise

    def add(self, name, *, cpus=1, python=None, environment=None, labels=""):
        """Start a node, and wait until it is there: Ray fails where two start together on one machine.

        `python` and `environment` can be those of a fake machine.
        """
        own = {**self.environment, **(environment or {})}
        own.setdefault("RECIPE_NODE_STORE", str(self.folder / name))
        words = [f"--address={self.gcs}", f"--num-cpus={cpus}", f"--memory={MEMORY}", f"--node-name={name}"]
        words += [f"--labels={labels}"] if labels else []
        self._start(name, python or self._python, own, words)

    def _start(self, name, python, environment, words):
        """Start a process of Ray, and wait until it has started: Ray gives up after 30 seconds on a busy machine."""
        command = [python, "-m", "ray.scripts.scripts", "start", "--block", "--object-store-memory=100000000", *words]
        for is_last in (False, False, True):
            own = dict(zip(_AGENT_PORTS, ports(len(_AGENT_PORTS)), strict=True))
            options = [f"--{option}={port}" for option, port in own.items()]
            with (self.folder / f"{name}.log").open("wb") as log:
                self.nodes[name] = subprocess.Popen(
                    [*command, *options],
                    env=environment,
                    stdout=log,
                    stderr=log,
                    start_new_session=True,
                    cwd=self.folder,
                )
            try:
                self._until(lambda port=own[_LISTEN]: self._has_started(name, port), f"{name} does not start")
            except AssertionError:
                self.kill(name)
                if is_last:
                    raise
            else:
                return

    def _has_started(self, name, port):
        """Say whether a node has started. Ray tells a new node all ports but this one, for which the node waits."""
        for log in self.folder.glob("session_2*/logs/raylet*.out"):
            for ident in _NODE_ID.findall(log.read_text(errors="replace")):
                place = log.parent.parent / f"{_LISTEN.replace('-', '_')}_{ident}"
                if not place.exists():
                    place.with_suffix(".new").write_text(str(port))
                    place.with_suffix(".new").replace(place)
        return "Ray runtime started" in self.log(name)

    def log(self, name):
        return (self.folder / f"{name}.log").read_text(errors="replace")

    def kill(self, name):
        """Kill a node with SIGKILL, and all processes that it has started."""
        node = self.nodes.pop(name)
        processes.end(node.pid)
        node.wait()

    def close(self):
        for name in reversed([*self.nodes]):
            self.kill(name)
        shutil.rmtree(self.folder, ignore_errors=True)

    def _until(self, is_true, what):
        end = time.monotonic() + _START_SECONDS
        while not is_true():
            ended = {name: self.log(name) for name, node in self.nodes.items() if node.poll() is not None}
            assert not ended, ended
            assert time.monotonic() < end, what
            time.sleep(0.1)


def ports(count):
    """Return ports on which nobody listens, and which Ray gives to none of its own."""
    every = []
    while len(every) < count:
        port = _LOWEST_PORT + secrets.randbelow(_HIGHEST_PORT - _LOWEST_PORT)
        if not _listens(port) and port not in every:
            every.append(port)
    return every


def _listens(port):
    try:
        socket.create_connection(("127.0.0.1", port), 1).close()
    except OSError:
        return False
    return True
