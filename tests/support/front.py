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

import pytest

from engine.server import Server, ports

PAGE = Path(__file__).parents[2] / "docs" / "serving.md"


@contextlib.contextmanager
def nginx(server: Server, folder: Path) -> Iterator[tuple[int, int]]:
    """Yield the port of nginx and its process; only the two ports differ from the page."""
    program = shutil.which("nginx", path="/usr/sbin:/usr/bin:/usr/local/bin")
    if program is None:
        pytest.skip("nginx is not installed (apt: nginx-light)")
    folder.chmod(0o755)
    [text] = re.findall(r"```nginx\n(.*?)```", PAGE.read_text(), re.DOTALL)
    port = ports.free().http
    assert text.count("8080") == text.count("127.0.0.1:8000") == 1
    text = text.replace("8080", f"127.0.0.1:{port}").replace("127.0.0.1:8000", server.http)
    (folder / "nginx.conf").write_text(text)
    options = f"daemon off; pid {folder}/pid; error_log {folder}/error.log;"
    with subprocess.Popen([program, "-p", folder, "-c", folder / "nginx.conf", "-g", options]) as process:
        for _ in range(100):
            if ask(port, "GET", "/v2/health/ready") == 200 or process.poll() is not None:
                break
            time.sleep(0.1)
        yield port, process.pid
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
