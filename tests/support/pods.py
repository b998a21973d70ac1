"""Pods of a package's kubernetes.yaml without Kubernetes: the real Triton and the real nginx, and the end of a pod.

A pod runs the package's own nginx.conf, and ends as the kubelet ends it: the preStop commands of all containers begin
at once, and each container gets SIGTERM when its own command has ended. Only ports and the folder /tmp differ, because
all pods are on one machine. The Service is tests/support/service.py.
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import front
import pytest
import service
import yaml

from engine.server import pip_server, ports
from engine.server.installation import ServerSetup
from engine.server.pip_server import Packaged
from engine.server.repository_needs import needs_of

NGINX = shutil.which("nginx", path="/usr/sbin:/usr/bin:/usr/local/bin")
READY_SECONDS = 120


@contextlib.contextmanager
def folder_of_all() -> Iterator[Path]:
    """Yield a folder that nginx's worker may read, who is nobody where root runs the tests."""
    with tempfile.TemporaryDirectory(prefix="recipe-pods-") as folder:
        Path(folder).chmod(0o755)
        yield Path(folder)


def pod_of(package: Path) -> dict[str, Any]:
    """Return the specification of the pods in a package's kubernetes.yaml."""
    deployment = next(yaml.safe_load_all((package / "kubernetes.yaml").read_text()))
    return deployment["spec"]["template"]["spec"]


class Pod:
    """A pod that serves a package; `folder` is its /tmp."""

    def __init__(self, package: Path, environment: Path, folder: Path) -> None:
        if NGINX is None:
            pytest.skip("nginx is not installed (apt: nginx-core)")
        folder.mkdir(mode=0o755)
        self._folder = folder
        self._spec = pod_of(package)
        free, triton = ports.free(), ports.free()
        self.http, self.grpc, self.metrics = free.http, free.grpc, triton.metrics
        setup = ServerSetup(package, triton, folder, f"recipe_{folder.name}", needs_of(package))
        launch = Packaged("pip", pip_server.VERSION, "for tests", environment=environment).launch(setup)
        text = (package / "nginx.conf").read_text()
        own = {"listen 8080": f"listen 127.0.0.1:{self.http}", "listen 8081": f"listen 127.0.0.1:{self.grpc}",
               "127.0.0.1:8000": f"127.0.0.1:{triton.http}", "127.0.0.1:8001": f"127.0.0.1:{triton.grpc}"}  # fmt: skip
        for theirs, ours in own.items():
            assert theirs in text
            text = text.replace(theirs, ours)
        (folder / "nginx.conf").write_text(self._here(text))
        words = next(each["command"] for each in self._spec["containers"] if each["name"] == "proxy")
        command = [NGINX, *words[1:]]
        command[command.index("/models/nginx.conf")] = str(folder / "nginx.conf")
        log = (folder / "log").open("w")
        options: dict[str, Any] = {"stdout": log, "stderr": subprocess.STDOUT, "start_new_session": True}
        self._containers = {
            "triton": subprocess.Popen([*launch.command], env={**launch.environment}, **options),
            "proxy": subprocess.Popen(command, **options),
        }

    def _here(self, text: str) -> str:
        assert "/tmp/" in text
        return text.replace("/tmp/", f"{self._folder}/")

    def wait(self) -> None:
        """Wait until the readiness probe succeeds."""
        until = time.monotonic() + READY_SECONDS
        while front.ask(self.http, "GET", "/v2/health/ready") != 200:
            ended = [name for name, process in self._containers.items() if process.poll() is not None]
            if ended or time.monotonic() > until:
                raise AssertionError(f"{ended or 'nothing'} ended: {(self._folder / 'log').read_text()[-3000:]}")
            time.sleep(0.2)

    def end(self, *, pre_stop: bool) -> dict[str, float]:
        """End the pod, with its preStop commands or without; return after how many seconds each container ended."""
        began = time.monotonic()
        grace = self._spec["terminationGracePeriodSeconds"]

        def ended(container: dict[str, Any]) -> float:
            process = self._containers[container["name"]]
            if pre_stop:
                words = container["lifecycle"]["preStop"]["exec"]["command"]
                subprocess.run(
                    [self._here(word) if "/tmp/" in word else word for word in words], check=True, timeout=grace
                )
            with contextlib.suppress(ProcessLookupError):
                process.send_signal(signal.SIGTERM)
            process.wait(max(1.0, began + grace - time.monotonic()))
            return time.monotonic() - began

        containers = self._spec["containers"]
        with ThreadPoolExecutor(len(containers)) as threads:
            return dict(zip((each["name"] for each in containers), threads.map(ended, containers), strict=True))

    def kill(self) -> None:
        """Leave nothing of the pod."""
        for process in self._containers.values():
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()


class Cluster:
    """A Service and its pods. Endpoints learn of a pod's end when it has begun, `lag` seconds later."""

    def __init__(self, environment: Path, folder: Path, *, lag: float = 1.0) -> None:
        self._environment, self._folder, self._lag = environment, folder, lag
        self._endpoints = folder / "endpoints.json"
        free = ports.free()
        self.http, self.grpc = free.http, free.grpc
        self._pods: list[Pod] = []
        self._publish([])
        self._service = subprocess.Popen([sys.executable, service.__file__, str(self._endpoints)])

    def _publish(self, pods: list[Pod]) -> None:
        new = self._endpoints.with_suffix(".new")
        new.write_text(json.dumps({self.http: [each.http for each in pods], self.grpc: [each.grpc for each in pods]}))
        new.replace(self._endpoints)

    def start(self, package: Path) -> Pod:
        """Start a pod; it is an endpoint once it is ready."""
        pod = Pod(package, self._environment, self._folder / f"pod{len(self._pods)}")
        self._pods.append(pod)
        pod.wait()
        return pod

    def replace(self, old: Pod | None, new: Pod, *, pre_stop: bool = True) -> dict[str, float]:
        """Route to `new`, and end `old` as the controller and the kubelet do, each by itself."""
        if old is None:
            self._publish([new])
            return {}
        self._publish([old, new])
        later = threading.Timer(self._lag, self._publish, ([new],))
        later.start()
        try:
            return old.end(pre_stop=pre_stop)
        finally:
            later.join()

    def close(self) -> None:
        """Leave nothing of the cluster."""
        for pod in self._pods:
            pod.kill()
        self._service.kill()
        self._service.wait()
