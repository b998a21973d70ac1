"""The KServe v2 protocol by hand, from its specification alone: a client, and a server with a set response time."""

from __future__ import annotations

import contextlib
import http.client
import json
import struct
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


class Client:
    """A client as a user may write one: tensors as JSON, files by the extension "binary tensor data"."""

    def __init__(self, server):
        self.server = server

    def get(self, path):
        return self._send("GET", path)

    def infer(self, model, inputs):
        """Send a request; `inputs` maps names to (datatype, shape, flat data). Return the flat outputs by name."""
        body = {"inputs": [{"name": name, "datatype": datatype, "shape": shape, "data": data}
                           for name, (datatype, shape, data) in inputs.items()]}  # fmt: skip
        answer = self._send("POST", f"/v2/models/{model}/infer", json.dumps(body).encode())
        return {each["name"]: each["data"] for each in answer["outputs"]}

    def infer_file(self, model, name, content):
        header = {
            "name": name,
            "shape": [1, 1],
            "datatype": "BYTES",
            "parameters": {"binary_data_size": len(content) + 4},
        }
        head = json.dumps({"inputs": [header]}).encode()
        body = head + struct.pack("<I", len(content)) + content
        answer = self._send("POST", f"/v2/models/{model}/infer", body, {"Inference-Header-Content-Length": len(head)})
        return {each["name"]: each["data"] for each in answer["outputs"]}

    def _send(self, method, path, body=None, fields=None):
        line = http.client.HTTPConnection(self.server, timeout=60)
        try:
            line.request(method, path, body, fields or {})
            answer = line.getresponse()
            content = answer.read()
            assert answer.status == http.client.OK, content
            return json.loads(content) if content else {}
        finally:
            line.close()


@contextlib.contextmanager
def server(*, seconds=0.0, fails=lambda number: False):
    """Serve one model `echo`, x [any, 2] -> y, which answers one request at a time, each after `seconds`.

    The server has none of Triton's extensions. `fails` says for the number of a request, from 0, whether the response
    is an error.
    """
    turn = threading.Lock()
    numbers = iter(range(10**9))

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        wbufsize = -1
        disable_nagle_algorithm = True

        def do_GET(self):
            tensor = {"name": "x", "datatype": "FP32", "shape": [-1, 2]}
            known = {
                "/v2": {"name": "by hand", "version": "1", "extensions": []},
                "/v2/models/echo": {"name": "echo", "inputs": [tensor], "outputs": [tensor | {"name": "y"}]},
            }
            self.answer(200 if self.path in known else 404, known.get(self.path, {"error": "not here"}))  # fmt: skip

        def do_POST(self):
            content = self.rfile.read(int(self.headers["Content-Length"]))
            if not self.path.endswith("/echo/infer"):
                return self.answer(404, {"error": "not here"})
            with turn:
                time.sleep(seconds)
                if fails(next(numbers)):
                    return self.answer(400, {"error": "this one is refused"})
            head = json.loads(content[: int(self.headers.get("Inference-Header-Content-Length", len(content)))])
            tensor = head["inputs"][0]
            values = tensor.get("data") or list(struct.unpack("<2f", content[-8:]))
            return self.answer(200, {"model_name": "echo", "outputs": [
                {"name": "y", "datatype": "FP32", "shape": tensor["shape"], "data": values}]})  # fmt: skip

        def answer(self, status, body):
            body = json.dumps(body).encode()
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_):
            pass

    listening = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    listening.daemon_threads = True
    thread = threading.Thread(target=listening.serve_forever, args=(0.05,))
    thread.start()
    try:
        yield f"127.0.0.1:{listening.server_port}"
    finally:
        listening.shutdown()
        thread.join()
        listening.server_close()
