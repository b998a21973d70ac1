"""The probe finds a server's Python processes, and those that ended though Triton did not end them.

The tests against a real server are in tests/e2e/test_probe.py.
"""

import http.server
import io
import json
import os
import signal
import subprocess
import sys
import threading
import time
import urllib.error
from pathlib import Path

import pytest

from engine.kit.triton.served.probe import Probe, processes

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="only Linux lists the children of a thread")
PATIENCE = 30.0
CONFIGS = {
    "some_model": {"backend": "python", "instance_group": [{"name": "some_model_0", "count": 2, "gpus": []}]},
    "native": {"backend": "onnxruntime", "instance_group": [{"name": "native_0", "count": 4, "gpus": []}]},
    "whole": {"platform": "ensemble", "ensemble_scheduling": {"step": [{"model_name": "some_model"}]}},
}


class Server(http.server.BaseHTTPRequestHandler):
    """Two answers of a server: its models, and a model's configuration."""

    def do_POST(self):
        self._answer([{"name": name} for name in CONFIGS])

    def do_GET(self):
        self._answer(CONFIGS[self.path.split("/")[3]])

    def _answer(self, value):
        self.send_response(200)
        self.end_headers()
        self.wfile.write(json.dumps(value).encode())

    def log_message(self, *_):
        """Print nothing."""


@pytest.fixture
def url():
    """The address of a server of the models in `CONFIGS`, which is no process named tritonserver."""
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Server) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()


@pytest.fixture
def instance():
    """Return a function that starts a child of this process, which looks like the process of an instance."""
    children = []

    def start(name):
        words = [sys.executable, "-c", "input()", "/models/some_model/1/model.py", "region", name, "DEFAULT"]
        children.append(subprocess.Popen(words, stdin=subprocess.PIPE))
        while not Path(f"/proc/{children[-1].pid}/cmdline").read_bytes():  # it is empty for a moment after the start
            time.sleep(0.01)
        return children[-1]

    yield start
    for child in children:
        child.kill()
        child.wait()


def _end(process):
    os.kill(process.pid, signal.SIGKILL)
    os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)


def test_a_process_has_the_name_of_its_instance_until_it_ends(instance):
    first, other = instance("some_model_0_0"), subprocess.Popen([sys.executable, "-c", "input()"], stdin=-1)
    with other:
        assert processes(os.getpid())[first.pid] == "some_model_0_0"
        assert processes(os.getpid())[other.pid] == ""
        _end(first)
        assert processes(os.getpid())[first.pid] is None
        first.wait()
        assert first.pid not in processes(os.getpid())
        other.kill()


def test_a_model_of_two_processes_is_dead_when_one_has_ended(instance, url):
    probe = Probe(url, PATIENCE, os.getpid())
    first, _ = instance("some_model_0_0"), instance("some_model_0_1")
    assert probe.dead_processes() == {}
    _end(first)
    reason = "Python processes that run: 1 of 2"
    expected = {"some_model": reason, "whole": f"in ensemble 'whole', some_model: {reason}"}
    assert probe.dead_processes() == expected
    first.wait()  # Triton took notice, so it ended the process itself
    assert probe.dead_processes() == {}


def test_a_backend_of_another_name_counts_by_the_processes_that_ran(instance, url):
    probe = Probe(url, PATIENCE, os.getpid())
    pair = instance("some_model_0_0"), instance("some_model_0_1")
    native = instance("native_0_0")
    assert len(pair) == 2
    assert probe.dead_processes() == {}
    _end(native)
    assert probe.dead_processes() == {"native": "Python processes that run: 0 of 1"}


def test_a_server_that_shows_no_processes_has_none_that_ended(instance, url):
    gone = instance("some_model_0_0")
    _end(gone)
    gone.wait()
    assert processes(gone.pid) == {}
    assert Probe(url, PATIENCE).dead_processes() == {}
    assert Probe("http://192.0.2.1:8000", PATIENCE).dead_processes() == {}


@pytest.mark.parametrize(
    ("code", "text", "reason"),
    [
        (500, "Stub process 'm_0' is not healthy.", "Stub process 'm_0' is not healthy."),
        (400, "Request for unknown model: 'm' is not found", "400: Request for unknown model: 'm' is not found"),
        (400, "the text 'is not healthy' is refused", None),
        (400, "unexpected shape for input 'TEXT'", None),
    ],
)
def test_an_error_tells_of_a_model_that_is_dead_or_not_loaded_and_a_refusal_of_one_that_answers(
    code, text, reason, monkeypatch
):
    def refuse(*_arguments, **_named):
        raise urllib.error.HTTPError("http://server", code, "", {}, io.BytesIO(json.dumps({"error": text}).encode()))

    monkeypatch.setattr(Probe, "_call", refuse)
    assert Probe("http://server", PATIENCE)._reason_of("m") == reason
