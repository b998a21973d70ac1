"""Fake servers that answer HTTP wrongly: each answer is raw bytes, or a function that writes to the socket."""

import contextlib
import socket
import threading
import time

_PAUSE = 0.5
_LONG = 120


class Troubled:
    """A fake server of one port: `answer` are the bytes of each answer, or a function of the socket and the request."""

    def __init__(self, answer=b""):
        self.answer = answer
        self.requests = []
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port = self._listener.getsockname()[1]
        threading.Thread(target=self._accept, daemon=True).start()

    def stop(self):
        self._listener.close()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.stop()

    def _accept(self):
        with contextlib.suppress(OSError):
            while True:
                client, _ = self._listener.accept()
                threading.Thread(target=self._serve, args=(client,), daemon=True).start()

    def _serve(self, client):
        with contextlib.suppress(OSError, ValueError), client:
            while request := _request(client):
                self.requests.append(request.split(b"\r\n")[0].decode("latin-1"))
                if callable(self.answer):
                    self.answer(client, request)
                else:
                    client.sendall(self.answer)
                if b"\r\nContent-Length: 0\r\n" not in (self.answer if isinstance(self.answer, bytes) else b""):
                    return


def status(line, *headers):
    """Return an answer without a body."""
    return "\r\n".join([f"HTTP/1.1 {line}", *headers, "Content-Length: 0", "", ""]).encode("latin-1")


def body(content, *headers, line="200 OK"):
    """Return an answer with a body, and with its length unless `headers` have one."""
    own = () if any(each.lower().startswith(("content-length", "transfer")) for each in headers) else (
        f"Content-Length: {len(content)}",
    )  # fmt: skip
    return "\r\n".join([f"HTTP/1.1 {line}", *own, *headers, "", ""]).encode("latin-1") + content


def dripping(beginning, piece, *, pause=_PAUSE):
    """Return what sends some bytes and then, for two minutes, one piece after each pause."""

    def answer(client, _):
        client.sendall(beginning)
        end = time.monotonic() + _LONG
        while time.monotonic() < end:
            client.sendall(piece)
            time.sleep(pause)

    return answer


def _request(client):
    head = b""
    while b"\r\n\r\n" not in head:
        piece = client.recv(65536)
        if not piece:
            return b""
        head += piece
    head, _, rest = head.partition(b"\r\n\r\n")
    lengths = [line.split(b":")[1] for line in head.split(b"\r\n") if line.lower().startswith(b"content-length")]
    left = int(lengths[0]) - len(rest) if lengths else 0
    while left > 0:
        left -= len(client.recv(65536)) or left
    return head
