"""Ports: Triton's defaults, free ports, or ports that the user names."""

import socket

import pytest

from engine.errors import UsageError
from engine.server import ports


def test_ports_are_the_usual_ones_or_others_and_those_that_are_given():
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        busy = taken.getsockname()[1]
        with pytest.raises(UsageError, match=f"port {busy} of 127.0.0.1 is taken"):
            ports.choose("127.0.0.1", busy, None, None)
    given = ports.free()
    chosen = ports.choose("127.0.0.1", None, given.grpc, None)
    assert chosen.grpc == given.grpc
    assert len({chosen.http, chosen.grpc, chosen.metrics}) == 3
    with pytest.raises(UsageError, match="two of the ports are the same"):
        ports.choose("127.0.0.1", given.http, given.http, None)
