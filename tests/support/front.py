"""The nginx of docs/serving.md in front of a Triton server: its configuration as it stands there, on other ports."""

from __future__ import annotations

import contextlib
import http.client
import re
import shutil
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

from engine.server import Server, ports

PAGE = Path(__file__).parents[2] / "docs" / "serving.md"


class Front(NamedTuple):
    """A running nginx: its port for HTTP, its address for gRPC, and the number of its process."""

    port: int
    grpc: str
    pid: int


@contextlib.contextmanager
def nginx(server: Server, folder: Path) -> Iterator[Front]:
    """Start nginx; only the ports differ from the page."""
    program = shutil.which("nginx", path="/usr/sbin:/usr/bin:/usr/local/bin")
    if program is None:
        pytest.skip("nginx is not installed (apt: nginx-light)")
    folder.chmod(0o755)
    [text] = re.findall(r"```nginx\n(.*?)```", PAGE.read_text(), re.DOTALL)
    free = ports.free()
    port, grpc = free.http, f"127.0.0.1:{free.grpc}"
    own = {"8080": f"127.0.0.1:{port}", "8081": grpc, "127.0.0.1:8000": server.http, "127.0.0.1:8001": server.grpc}
    for of_the_page, here in own.items():
        assert text.count(of_the_page) == 1
        text = text.replace(of_the_page, here)
    (folder / "nginx.conf").write_text(text)
    options = f"daemon off; pid {folder}/pid; error_log {folder}/error.log;"
    with subprocess.Popen([program, "-p", folder, "-c", folder / "nginx.conf", "-g", options]) as process:
        for _ in range(100):
            if ask(port, "GET", "/v2/health/ready") == 200 or process.poll() is not None:
                break
            time.sleep(0.1)
        yield Front(port, grpc, process.pid)
        process.terminate()


def ask(port: int, method: str, path: str, body: str | bytes | None = None) -> int | None:
    """Return the status of the answer; None where there is none. A body that is refused is not sent to its end."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=30)
    try:
        with contextlib.suppress(BrokenPipeError, ConnectionResetError):
            connection.request(method, path, body)
        return connection.getresponse().status
    except OSError:
        return None
    finally:
        connection.close()
