"""A real Triton server without a container or a GPU: the one that nvidia-pytriton carries, in a venv of its own.

`RECIPE_TRITON_VENV` names the venv; otherwise it is kept in pytest's cache. Where the server cannot be had, `venv`
raises `Unavailable` with the reason.
"""

from __future__ import annotations

import contextlib
import ctypes
import fcntl
import os
import platform
import shutil
import signal
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

VERSION = f"{sys.version_info.major}.{sys.version_info.minor}"
SERVER = "nvidia-pytriton==0.7.0"
CLIENT = ("tritonclient[http,grpc]==2.51.0", "numpy<2", "onnxruntime", "tokenizers")
"""numpy 2 makes this server's python backend load models and then fail on every request."""
PATIENCE = 60.0


class Unavailable(Exception):  # noqa: N818 - a reason to skip, not an error
    """Why there is no server on this machine."""


@dataclass(frozen=True)
class Server:
    """A running server and where it listens, on this machine alone."""

    http: str
    grpc: str


def venv(cache: Path) -> Path:
    """Return the venv with the server, made on first use. Raises Unavailable."""
    if platform.system() != "Linux" or platform.machine() != "x86_64":
        raise Unavailable("nvidia-pytriton is made for Linux on x86-64 only")
    try:
        ctypes.CDLL(f"libpython{VERSION}.so.1.0")
    except OSError:
        raise Unavailable(
            f"libpython{VERSION}.so.1.0 is missing (Debian: apt-get install libpython{VERSION})"
        ) from None
    place = Path(os.environ.get("RECIPE_TRITON_VENV") or cache / f"triton-venv-{VERSION}")
    place.mkdir(parents=True, exist_ok=True)
    with (place / "lock").open("w") as lock:  # of several test processes, one makes it
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not (place / "ready").is_file():
            _make(place)
    return place


@contextlib.contextmanager
def serving(repository: Path, scratch: Path, environment: Path) -> Iterator[Server]:
    """Serve a model repository from `scratch`, until the block ends. Raises RuntimeError with the server's log."""
    packages = next((environment / "lib").glob("python*/site-packages"))
    home = packages / "pytriton" / "tritonserver"
    backends = _backends(home, scratch / "backends")
    http, grpc, metrics = _free_ports(3)
    command = [
        str(home / "bin" / "tritonserver"),
        f"--model-repository={repository}",
        f"--backend-directory={backends}",
        *(f"--{name}-address=127.0.0.1" for name in ("http", "grpc")),
        f"--http-port={http}",
        f"--grpc-port={grpc}",
        f"--metrics-port={metrics}",
    ]
    clean = {
        "HOME": os.environ.get("HOME", "/"),
        "PATH": f"{environment / 'bin'}:/usr/bin:/bin",
        "LD_LIBRARY_PATH": str(packages / "nvidia_pytriton.libs"),
        "CUDA_VISIBLE_DEVICES": "",
    }
    before = set(Path("/dev/shm").glob("triton_python_backend_*"))
    log = scratch / "server.log"
    with log.open("wb") as file:
        process = subprocess.Popen(command, env=clean, stdout=file, stderr=subprocess.STDOUT, cwd=scratch)
    try:
        _wait(process, http, log)
        yield Server(f"127.0.0.1:{http}", f"127.0.0.1:{grpc}")
    finally:
        process.send_signal(signal.SIGTERM)
        try:
            process.wait(20)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        for left in set(Path("/dev/shm").glob("triton_python_backend_*")) - before:
            left.unlink(missing_ok=True)


def _make(place: Path) -> None:
    python = place / "bin" / "python"
    steps = (
        [sys.executable, "-m", "venv", str(place)],
        [str(python), "-m", "pip", "install", "--quiet", "--no-deps", SERVER],
        [str(python), "-m", "pip", "install", "--quiet", *CLIENT],
    )
    for command in steps:
        done = subprocess.run(command, capture_output=True, text=True, timeout=900, check=False)
        if done.returncode:
            last = (done.stderr.strip() or done.stdout.strip() or "no output").splitlines()[-1]
            raise Unavailable(f"`{' '.join(command[1:])}` failed: {last}")
    (place / "ready").write_text(SERVER)


def _backends(home: Path, folder: Path) -> Path:
    """Lay out the python backend, and the stand-in for ONNX Runtime's own."""
    python, stand_in = folder / "python", folder / "onnxruntime"
    for each in (python, stand_in):
        each.mkdir(parents=True)
    for name in ("libtriton_python.so", "triton_python_backend_utils.py"):
        shutil.copy(home / "backends" / "python" / name, python / name)
    stub = python / "triton_python_backend_stub"
    shutil.copy(home / "python_backend_stubs" / VERSION / stub.name, stub)
    stub.chmod(0o755)
    shutil.copy(Path(__file__).with_name("triton_stand_in.py"), stand_in / "model.py")
    return folder


def _free_ports(count: int) -> list[int]:
    with contextlib.ExitStack() as stack:
        sockets = [stack.enter_context(socket.socket()) for _ in range(count)]
        for each in sockets:
            each.bind(("127.0.0.1", 0))
        return [each.getsockname()[1] for each in sockets]


def _wait(process: subprocess.Popen[bytes], port: int, log: Path) -> None:
    end = time.monotonic() + PATIENCE
    while time.monotonic() < end and process.poll() is None:
        with contextlib.suppress(OSError):
            answer = urllib.request.urlopen(f"http://127.0.0.1:{port}/v2/health/ready", timeout=2)
            if answer.status == 200:
                return
        time.sleep(0.1)
    said = log.read_text(errors="replace")[-6000:]
    raise RuntimeError(f"the Triton server did not become ready (exit {process.poll()}):\n{said}")
