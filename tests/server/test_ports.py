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


@pytest.mark.parametrize(
    ("given", "address"), [("127.0.0.1", "127.0.0.1"), ("localhost", "127.0.0.1"), ("0.0.0.0", "0.0.0.0")]
)
def test_an_address_is_in_digits_whatever_the_user_names(given, address):
    chosen = ports.choose(given, None, None, None)
    assert (chosen.address, chosen.written, chosen.host) == (address, address, "127.0.0.1")


@pytest.mark.parametrize("given", ["", "no-such-host.invalid", "300.0.0.1", "a" * 70, "::1::"])
def test_a_name_that_is_no_address_is_an_error(given):
    with pytest.raises(UsageError, match="is no address, and no host that this machine knows"):
        ports.choose(given, None, None, None)


def test_an_address_of_ipv6_has_brackets_before_a_port():
    try:
        with socket.socket(socket.AF_INET6) as probe:
            probe.bind(("::1", 0))
    except OSError as error:
        pytest.skip(f"this machine has no IPv6: {error}")
    for given, address in (("::1", "::1"), ("[::1]", "::1"), ("::", "::")):
        chosen = ports.choose(given, None, None, None)
        assert (chosen.address, chosen.written, chosen.host) == (address, f"[{address}]", "[::1]")
