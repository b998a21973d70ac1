"""URLs of servers, and the protocol that a server really speaks."""

import contextlib
import socket
import threading

import kserve_by_hand
import pytest

from engine.client import address
from engine.client.address import Address
from engine.errors import StepError, UsageError


@pytest.mark.parametrize(
    ("url", "host", "port", "protocol", "tls"),
    [
        ("localhost:9000", "localhost", 9000, None, False),
        ("http://localhost", "localhost", 8000, "http", False),
        ("grpc://10.0.0.1:8001/", "10.0.0.1", 8001, "grpc", False),
        ("HTTPS://h", "h", 443, "http", True),
        ("grpcs://[::1]:1", "::1", 1, "grpc", True),
    ],
)
def test_a_url_says_where_and_how(url, host, port, protocol, tls):
    assert address.parse(url) == Address(host, port, protocol, tls)


def test_what_is_no_url_of_a_server_is_refused():
    for url in ("", "ftp://h", "http://h/v2/models", "a b", "h:0", "h:99999", "http://user@h"):
        with pytest.raises(UsageError, match=r"address|port"):
            address.parse(url)


@contextlib.contextmanager
def listening(says):
    """Serve one connection, which gets these bytes and nothing else."""
    with socket.create_server(("127.0.0.1", 0)) as door:

        def answer():
            with contextlib.suppress(OSError):
                line, _ = door.accept()
                line.sendall(says)
                line.shutdown(socket.SHUT_WR)
                while line.recv(4096):
                    pass
                line.close()

        thread = threading.Thread(target=answer)
        thread.start()
        yield f"127.0.0.1:{door.getsockname()[1]}"
        thread.join(10)


def test_http_is_told_from_grpc_by_what_the_server_says_first():
    with kserve_by_hand.server() as plain:
        assert address.resolved(plain).protocol == "http"
    with listening(b"\x00\x00\x00\x04\x00\x00\x00\x00\x00") as settings:
        assert address.resolved(settings).protocol == "grpc"
    with listening(b"\x00\x00\x00\x04\x00\x00\x00\x00\x00") as settings, pytest.raises(StepError, match="grpc://"):
        address.resolved(f"http://{settings}")
    for says in (b"SSH-2.0-OpenSSH\r\n", b"HTTP/1.1 200 OK\r\n\r\nhello"):
        with listening(says) as other, pytest.raises(StepError, match="serves no models"):
            address.resolved(other)
    with socket.create_server(("127.0.0.1", 0)) as door:
        free = f"127.0.0.1:{door.getsockname()[1]}"
    with pytest.raises(StepError, match="nothing answers") as caught:
        address.resolved(free)
    assert "recipe serve" in caught.value.hint
