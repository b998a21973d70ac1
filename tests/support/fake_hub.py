"""A fake of the model hub: a real HTTP server on this machine that speaks the part of its API that downloads use."""

from __future__ import annotations

import contextlib
import hashlib
import json
import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, Self
from urllib.parse import unquote, urlsplit

PAGE = b"<!DOCTYPE html><html><body>Please sign in to the corporate network</body></html>"
FIRST, SECOND = "1" * 40, "2" * 40
"""Two commits."""
REPO = "acme/tiny"
TOKEN = "hf_" + "s3cret" * 5


def safetensors(shapes: dict[str, list[int]], *, fill: int = 0) -> bytes:
    """Return a file in the safetensors format, written by hand: float32, every byte `fill`."""
    header, end = {}, 0
    for name, shape in shapes.items():
        size = 4
        for extent in shape:
            size *= extent
        header[name] = {"dtype": "F32", "shape": shape, "data_offsets": [end, end + size]}
        end += size
    text = json.dumps(header).encode()
    return len(text).to_bytes(8, "little") + text + bytes([fill]) * end


def model(*, fill: int = 0, width: int = 64, **settings: Any) -> dict[str, bytes]:
    """Return a repository: a classifier's settings, tokenizer and weights, and files that do not matter."""
    config = {
        "architectures": ["BertForSequenceClassification"],
        "model_type": "bert",
        "vocab_size": 100,
        "max_position_embeddings": 128,
        **settings,
    }
    return {
        ".gitattributes": b"*.safetensors filter=lfs\n",
        "README.md": b"# A model\n",
        "config.json": json.dumps(config).encode(),
        "model.safetensors": safetensors({"embeddings": [100, width], "head": [2, width]}, fill=fill),
        "onnx/model.onnx": b"not wanted",
        "pytorch_model.bin": b"not wanted either",
        "tokenizer.json": b'{"version": "1.0"}',
        "tokenizer_config.json": b"{}",
    }


@dataclass
class FakeHub:
    """What the server holds, and how it misbehaves. `requests` has "METHOD path" and whether a token came along."""

    repositories: dict[str, dict[str, dict[str, bytes]]] = field(default_factory=dict)
    """Name -> commit -> file -> content."""
    branches: dict[str, str] = field(default_factory=lambda: {"main": FIRST})
    refuse: tuple[int, str] | None = None
    """Status and X-Error-Code for every file of a gated repository."""
    trouble: list[int] = field(default_factory=list)
    """Statuses with which the next calls of the API fail."""
    api_page: bool = False
    head_page: set[str] = field(default_factory=set)
    """Files for which even the question about them is answered by a proxy's page."""
    body_page: set[str] = field(default_factory=set)
    """Files whose content is replaced by a proxy's page."""
    damaged: set[str] = field(default_factory=set)
    """Files whose content differs in one byte from what is stated."""
    cuts: dict[str, int] = field(default_factory=dict)
    """File -> how many of its downloads are cut off in the middle."""
    resumes: bool = True
    """Whether a Range is honoured."""
    delay: float = 0.0
    """Seconds before each answer of the API."""
    requests: list[tuple[str, bool]] = field(default_factory=list)
    resumed: int = 0
    """How many downloads went on where they were cut off."""
    port: int = 0

    @property
    def endpoint(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def downloads(self) -> list[str]:
        """Return the names of the files that were asked for."""
        paths = [urlsplit(request.partition(" ")[2]).path for request, _ in self.requests]
        return sorted({path.rpartition("/")[2] for path in paths if not path.startswith("/api/")})

    def __enter__(self) -> Self:
        handler = type("Handler", (_Handler,), {"hub": self})
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
        self._server.daemon_threads = True
        self.port = self._server.server_address[1]
        threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()


class _Handler(BaseHTTPRequestHandler):
    hub: FakeHub
    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        self._answer()

    def do_HEAD(self) -> None:
        self._answer()

    def log_message(self, *_: object) -> None:
        """Keep quiet."""

    def _answer(self) -> None:
        self.hub.requests.append((f"{self.command} {self.path}", "authorization" in self.headers))
        parts = [unquote(part) for part in urlsplit(self.path).path.strip("/").split("/")]
        if parts[:2] == ["api", "models"]:
            self._api("/".join(parts[2 : parts.index("revision")]), parts[-1])
        elif parts[0] == "cdn":
            self._content("/".join(parts[4:]), self.hub.repositories[f"{parts[1]}/{parts[2]}"][parts[3]], {})
        else:
            at = parts.index("resolve")
            self._resolve("/".join(parts[:at]), parts[at + 1], "/".join(parts[at + 2 :]))

    def _api(self, name: str, revision: str) -> None:
        time.sleep(self.hub.delay)
        if self.hub.api_page:
            self._send(200, PAGE, {"Content-Type": "text/html"})
        elif self.hub.trouble:
            self._send(self.hub.trouble.pop(0), b"overloaded", {})
        elif (commit := self._commit(name, revision)) is not None:
            files = self.hub.repositories[name][commit]
            listed = [_listed(file, content) for file, content in sorted(files.items())]
            answer = {"_id": "1", "id": name, "modelId": name, "sha": commit, "private": False, "siblings": listed}
            self._send(200, json.dumps(answer).encode(), {"Content-Type": "application/json"})

    def _resolve(self, name: str, revision: str, file: str) -> None:
        commit = self._commit(name, revision)
        if commit is None:
            return
        if self.hub.refuse:
            self._refuse(*self.hub.refuse)
        elif file in self.hub.head_page:
            self._send(200, PAGE, {"Content-Type": "text/html"})
        elif file not in self.hub.repositories[name][commit]:
            self._refuse(404, "EntryNotFound")
        else:
            content = self.hub.repositories[name][commit][file]
            headers = {"X-Repo-Commit": commit, "ETag": f'"{git_sha1(content)}"'}
            if not _is_large(file):
                self._content(file, {file: content}, headers)
                return
            linked = {"X-Linked-Etag": f'"{_sha256(content)}"', "X-Linked-Size": str(len(content))}
            # Another host, as the real one's: the token must not follow there.
            location = f"http://localhost:{self.hub.port}/cdn/{name}/{commit}/{file}?X-Signature=secret"
            self._send(302, b"", {**headers, **linked, "Location": location})

    def _content(self, file: str, files: dict[str, bytes], headers: dict[str, str]) -> None:
        content = files[file]
        if file in self.hub.damaged:
            content = content[:-1] + bytes([content[-1] ^ 1])
        if file in self.hub.body_page and self.command == "GET":
            content = PAGE.ljust(len(content))
        start = 0
        if self.hub.resumes and self.headers.get("Range", "").startswith("bytes="):
            start = int(self.headers["Range"].removeprefix("bytes=").partition("-")[0])
            self.hub.resumed += start > 0
            headers["Content-Range"] = f"bytes {start}-{len(content) - 1}/{len(content)}"
        cut = None
        if self.command == "GET" and self.hub.cuts.get(file, 0):
            self.hub.cuts[file] -= 1
            cut = (start + len(content)) // 2
        self._send(206 if start else 200, content[start:], headers, cut=None if cut is None else cut - start)

    def _commit(self, name: str, revision: str) -> str | None:
        """Return the commit, or answer that there is none."""
        if name not in self.hub.repositories:
            self._refuse(404 if "authorization" in self.headers else 401, "RepoNotFound")
            return None
        commit = self.hub.branches.get(revision, revision)
        if commit not in self.hub.repositories[name]:
            self._refuse(404, "RevisionNotFound")
            return None
        return commit

    def _refuse(self, status: int, code: str) -> None:
        token = self.headers.get("authorization", "")
        self._send(status, b"{}", {"X-Error-Code": code, "X-Error-Message": f"no access with {token}"})

    def _send(self, status: int, body: bytes, headers: dict[str, str], *, cut: int | None = None) -> None:
        self.send_response(status)
        for name, value in {**headers, "Content-Length": str(len(body))}.items():
            self.send_header(name, value)
        self.end_headers()
        if self.command == "GET":
            with contextlib.suppress(ConnectionError):  # who asked may have lost patience
                self.wfile.write(body[:cut])
        if cut is not None:
            self.close_connection = True


def git_sha1(content: bytes) -> str:
    return hashlib.sha1(b"blob %d\0" % len(content) + content).hexdigest()


def _sha256(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def _is_large(file: str) -> bool:
    return file.endswith((".safetensors", ".bin", ".onnx"))


def _listed(file: str, content: bytes) -> dict[str, Any]:
    listed = {"rfilename": file, "size": len(content), "blobId": git_sha1(content)}
    if not _is_large(file):
        return listed
    return {**listed, "lfs": {"sha256": _sha256(content), "size": len(content), "pointerSize": 134}}


def write(directory: Path, files: Mapping[str, bytes]) -> Path:
    """Write a repository's files into a directory, as a user would have them."""
    for name, content in files.items():
        path = directory / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
    return directory
