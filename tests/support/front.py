"""nginx in front of a Triton server, with the configuration of `engine/server/proxy.py` on free ports."""

from __future__ import annotations

import contextlib
import http.client
import shutil
import subprocess
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

import pytest

from engine.server import Server, ports, proxy


class Front(NamedTuple):
    """A running nginx: its port for HTTP, its address for gRPC, and the number of its process."""

    port: int
    grpc: str
    pid: int


@contextlib.contextmanager
def nginx(server: Server, folder: Path, **limits: int) -> Iterator[Front]:
    """Start nginx; `limits` are those of `proxy.nginx`."""
    program = shutil.which("nginx", path="/usr/sbin:/usr/bin:/usr/local/bin")
    if program is None:
        pytest.skip("nginx is not installed (apt: nginx-core)")
    free = ports.free()
    port, grpc = free.http, f"127.0.0.1:{free.grpc}"
    listen = {"http": f"127.0.0.1:{port}", "grpc": grpc}
    text = proxy.nginx(**listen, triton_http=server.http, triton_grpc=server.grpc, **limits)
    text = text.replace("/tmp/nginx", f"{folder}/nginx")
    folder.chmod(0o755)
    (folder / "nginx.conf").write_text(text)
    command = [program, "-e", "stderr", "-c", folder / "nginx.conf", "-g", "daemon off;"]
    with (folder / "error.log").open("w") as log, subprocess.Popen(command, stderr=log) as process:
        for _ in range(100):
            if ask(port, "GET", "/v2/health/ready") == 200 or process.poll() is not None:
                break
            time.sleep(0.1)
        yield Front(port, grpc, process.pid)
        process.terminate()


def ask(
    port: int,
    method: str,
    path: str,
    body: str | bytes | None = None,
    headers: Mapping[str, str] | None = None,
    *,
    source: str = "127.0.0.1",
) -> int | None:
    """Return the status of the answer; None where there is none. A body that is refused is not sent to its end.

    `source` is the client's address.
    """
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=30, source_address=(source, 0))
    try:
        with contextlib.suppress(BrokenPipeError, ConnectionResetError):
            connection.request(method, path, body, dict(headers or {}))
        return connection.getresponse().status
    except OSError:
        return None
    finally:
        connection.close()
