"""The proxy of docs/serving.md before a real Triton server: what would end the server does not reach it."""

import http.client
import json
import re
import shutil
import subprocess
import time
from pathlib import Path

import pytest
import triton_server

from engine.server import ports

PAGE = Path(__file__).parent.parent.parent / "docs" / "serving.md"
MODEL = """
import triton_python_backend_utils as triton


class TritonPythonModel:
    def execute(self, requests):
        given = [triton.get_input_tensor_by_name(each, "x").as_numpy() for each in requests]
        return [triton.InferenceResponse([triton.Tensor("y", each)]) for each in given]
"""
CONFIG = """
name: "same" backend: "python" max_batch_size: 0
input { name: "x" data_type: TYPE_INT64 dims: [-1] }
output { name: "y" data_type: TYPE_INT64 dims: [-1] }
"""

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def server(environment, tmp_path_factory):
    repository = tmp_path_factory.mktemp("repository")
    (repository / "same" / "1").mkdir(parents=True)
    (repository / "same" / "config.pbtxt").write_text(CONFIG)
    (repository / "same" / "1" / "model.py").write_text(MODEL)
    with triton_server.serving(repository, repository, environment) as server:
        yield server


@pytest.fixture(scope="module")
def proxy(server, tmp_path_factory):
    """nginx with the configuration of the page; only the two ports are other ones."""
    program = shutil.which("nginx", path="/usr/sbin:/usr/bin:/usr/local/bin")
    if program is None:
        pytest.skip("nginx is not installed (apt: nginx-light)")
    folder = tmp_path_factory.mktemp("nginx")
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
        yield port
        process.terminate()


def ask(port, method, path, body=None):
    """Return the status of the answer; None where there is none."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=30)
    try:
        connection.request(method, path, body)
        return connection.getresponse().status
    except OSError:
        return None
    finally:
        connection.close()


def row(numbers):
    tensor = {"name": "x", "shape": [len(numbers)], "datatype": "INT64", "data": numbers}
    return json.dumps({"inputs": [tensor]})


INFER = "/v2/models/same/infer"


@pytest.mark.parametrize(
    ("body", "status"),
    [
        (row([1, 2, 3]), 200),
        (row([1] * 30_000), 200),
        ("[" * 96 * 1024, 500),
        ("[" * 200_000, 413),
        (b"\0" * 10_000_000, 413),
    ],
    ids=["small", "90 kB", "nested as deep as the limit allows", "nested deeper", "10 MB"],
)
def test_what_would_end_the_server_does_not_reach_it(proxy, server, body, status):
    assert ask(proxy, "POST", INFER, body) == status
    assert ask(proxy, "POST", INFER, row([4])) == 200
    assert server.ended() is None


@pytest.mark.parametrize("path", ["/v2/repository/models/same/unload", "/v2/systemsharedmemory/region/a/register"])
def test_nobody_administers_the_server_through_it(proxy, path):
    assert ask(proxy, "POST", path, "{}") == 404
    assert ask(proxy, "GET", "/v2/health/ready") == 200
