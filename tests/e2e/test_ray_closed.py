"""The commands of docs/cluster.md as the page has them, on the loopback: a head with a token, and an open one.

Each machine is a home directory of its own. Host names, ports and the remote are replaced; a fake `scp` copies a file.
"""

import os
import subprocess
import sys
import tempfile
from contextlib import suppress
from pathlib import Path

import documents
import pytest
import ray_cluster
from gpu_project import project_in

from engine.system import processes

pytestmark = [pytest.mark.slow, pytest.mark.whole]

GENERATE, COPY, HEAD, NODE, LAPTOP = (block.text for block in documents.run_by(__file__))
RECIPE = """\
name: minilm_t4
model: {source: model.onnx}
target: {runtime: onnxruntime}
precision: fp32
profiles: [{batch: [1, 2, 4]}]
"""
WARNING = "asks for no token: whoever reaches its ports can run any program on its nodes"
SCP = '#!/bin/sh\n# The arguments: -p HOST:PATH FOLDER\nexec cp -p "$HEAD_HOME/${2#*:}" "$3"\n'


class Machines:
    """A head, a node and a laptop: their home directories, and what each runs."""

    def __init__(self, *, tls=False):
        ray_cluster.program()
        self.folder = Path(tempfile.mkdtemp(prefix="ray", dir="/tmp"))  # a socket's path has at most 107 bytes
        self.port, self.client_port = ray_cluster.ports(2)
        (self.folder / "remote").mkdir()
        (self.folder / "bin").mkdir()
        (self.folder / "bin" / "scp").write_text(SCP)
        (self.folder / "bin" / "scp").chmod(0o755)
        project_in(self.folder / "laptop")
        (self.folder / "laptop" / "recipes" / "minilm_t4.yaml").write_text(RECIPE)
        self.environment = {
            "PATH": f"{self.folder / 'bin'}:{Path(sys.executable).parent}:{os.environ['PATH']}",
            "HEAD_HOME": str(self.folder / "head"), "RAY_TMPDIR": str(self.folder), "RECIPE_TRUST": "none",
            "RAY_USAGE_STATS_ENABLED": "0", "RAY_agent_register_timeout_ms": "300000",
            "RAY_worker_register_timeout_seconds": "300", "RAY_DEFAULT_OBJECT_STORE_MEMORY_PROPORTION": "0.01",
            "PYTHONPATH": ray_cluster.PYTHONPATH, "CI": "true",
            **(certificates(self.folder) if tls else {}),
        }  # fmt: skip

    def run(self, machine, block, *, expect=0, talks=False, **variables):
        """Run a block of the page on a machine, and return what it prints; `talks` allows Ray's own tracebacks."""
        home = self.folder / machine
        home.mkdir(exist_ok=True)
        for shown, here in (
            ("head:6379", f"127.0.0.1:{self.port}"), ("head:10001", f"127.0.0.1:{self.client_port}"),
            ("--port 6379", f"--port {self.port}"), ("server-port 10001", f"server-port {self.client_port}"),
            ("s3://team/recipes", f"file://{self.folder / 'remote'}"),
        ):  # fmt: skip
            block = block.replace(shown, here)
        environment = {**self.environment, "HOME": str(home), **variables}
        with (self.folder / "printed").open("w+") as printed:  # the processes of Ray would hold a pipe open
            done = subprocess.run(
                ["bash", "-ec", block],
                env=environment,
                cwd=home,
                stdout=printed,
                stderr=printed,
                timeout=400,
                check=False,
            )
            printed.seek(0)
            text = printed.read()
        assert done.returncode == expect, text
        assert talks or "Traceback" not in text
        return text

    def close(self):
        """End all processes of this cluster: their environment names its folder."""
        mark = f"RAY_TMPDIR={self.folder}".encode()
        for process in Path("/proc").glob("[0-9]*"):
            with suppress(OSError):
                if mark in (process / "environ").read_bytes().split(b"\0"):
                    processes.end(int(process.name))


def certificates(folder):
    """Write the files of an authority and of one certificate for this machine, and return Ray's variables."""
    names = ",".join(f"IP:{address}" for address in dict.fromkeys(("127.0.0.1", own_address())))
    for words in (
        "req -x509 -newkey rsa:2048 -nodes -keyout ca.key -out ca.crt -days 2 -subj /CN=ca",
        f"req -newkey rsa:2048 -nodes -keyout tls.key -out tls.csr -subj /CN=ray -addext subjectAltName={names}",
        "x509 -req -in tls.csr -CA ca.crt -CAkey ca.key -CAcreateserial -out tls.crt -days 2 -copy_extensions copy",
    ):
        subprocess.run(["openssl", *words.split()], cwd=folder, check=True, capture_output=True)
    files = {"RAY_TLS_SERVER_CERT": "tls.crt", "RAY_TLS_SERVER_KEY": "tls.key", "RAY_TLS_CA_CERT": "ca.crt"}
    return {"RAY_USE_TLS": "1", **{name: str(folder / file) for name, file in files.items()}}


def own_address():
    from ray.util import get_node_ip_address

    return get_node_ip_address()


@pytest.fixture(scope="module", params=["plain", "tls"])
def closed(request):
    machines = Machines(tls=request.param == "tls")
    try:
        machines.run("head", GENERATE)
        for machine in ("node", "laptop"):
            machines.run(machine, COPY)
        machines.run("head", HEAD)
        machines.run("node", NODE, RECIPE_NODE_STORE=str(machines.folder / "store"))
        yield machines
    finally:
        machines.close()


def test_the_page_s_commands_work_word_for_word(closed):
    printed = closed.run("laptop", LAPTOP)
    assert "t4-1" in printed
    assert "minilm_t4 -> build/minilm_t4" in printed
    assert WARNING not in printed
    token = closed.folder / "laptop" / ".ray" / "auth_token"
    assert token.stat().st_mode & 0o077 == 0
    assert (closed.folder / "laptop" / "build" / "minilm_t4").is_dir()
    auto = LAPTOP.replace("ray://head:10001", "auto")
    assert auto.count("--on auto") == 2
    assert WARNING not in closed.run("laptop", auto, RAY_ADDRESS=f"127.0.0.1:{closed.port}")


@pytest.mark.parametrize("where", ["ray://head:10001", "auto"])
def test_a_laptop_without_the_token_or_with_another_one_is_told_so(closed, where):
    build = LAPTOP.replace("ray://head:10001", where)
    address = {"RAY_ADDRESS": f"127.0.0.1:{closed.port}"}
    lacks = closed.run("laptop", build, expect=1, RAY_AUTH_TOKEN_PATH="/dev/null/none", **address)
    assert "asks for a token" in lacks
    other = closed.run("laptop", build, expect=1, RAY_AUTH_TOKEN="0" * 64, **address)
    assert "has another token than this machine" in other
    assert "`ray get-auth-token` on the head prints it" in other


def test_a_head_and_a_node_without_the_token_do_not_start():
    machines = Machines()
    try:
        assert "no authentication token was found" in machines.run("head", HEAD, expect=1, talks=True)
    finally:
        machines.close()


def test_an_open_head_is_warned_of_and_given_no_token():
    machines = Machines()
    try:
        for machine, block in (("head", HEAD), ("node", NODE)):
            assert "RAY_AUTH_MODE=token" in block
            machines.run(machine, block.replace("RAY_AUTH_MODE=token", "RAY_AUTH_MODE=disabled"))
        address = {"RAY_ADDRESS": f"127.0.0.1:{machines.port}"}
        assert machines.run("laptop", LAPTOP, **address).count(WARNING) == 2
        machines.run("head", GENERATE)
        machines.run("laptop", COPY)
        for where in ("ray://head:10001", "auto"):
            printed = machines.run("laptop", LAPTOP.replace("ray://head:10001", where), **address)
            assert printed.count(WARNING) == 2, printed
    finally:
        machines.close()
