"""The options with which every kind of server is started."""

import dataclasses

import pytest
from small_servers import place

from engine import commands
from engine.errors import UsageError
from engine.server import installation
from engine.server.installation import ServerSetup, options
from engine.server.ports import Ports
from engine.server.repository_needs import Engine, Needs


def of_engines(*engines):
    words = options(place(Needs(engines=engines)), "/models", Ports(8000, 8001, 8002))
    return [word for word in words if word.startswith("--backend-config=tensorrt,")]


def test_triton_may_run_the_code_inside_a_version_compatible_engine_and_loads_the_plugins_of_every_engine():
    assert of_engines(Engine("a", "10.13.0.35"), Engine("b", "10.13.0.35", version_compatible=True)) == [
        "--backend-config=tensorrt,version-compatible=true"
    ]
    assert of_engines(Engine("a", "10.13.0.35")) == []
    engines = [Engine(name, "10.13.0.35", plugins=(f"{name}/1/plugins/x.so",)) for name in ("a", "b")]
    assert of_engines(*engines) == [
        "--backend-config=tensorrt,plugins=/models/a/1/plugins/x.so;/models/b/1/plugins/x.so"
    ]


def test_each_protocol_takes_an_address_of_ipv6_in_its_own_form():
    words = options(place(Needs()), "/models", Ports(8000, 8001, 8002, "::1"))
    assert [word for word in words if "-address=" in word] == [
        "--http-address=ipv6:::1", "--metrics-address=ipv6:::1", "--grpc-address=[::1]"
    ]  # fmt: skip


def test_what_stands_behind_two_dashes_goes_to_the_server_and_is_an_argument_of_other_commands(tmp_path):
    parsed = commands.parse(["serve", "r.yaml", "--http-port", "9000", "--", "--log-verbose=1", "--rate-limit=off"])
    assert [str(each) for each in parsed.recipes] == ["r.yaml"]
    words = installation.user_options(parsed.further)
    place = ServerSetup(tmp_path, Ports(8000, 8001, 8002), tmp_path, "recipe_ab12", Needs(), words)
    assert options(place, "/models", place.ports)[-2:] == ["--log-verbose=1", "--rate-limit=off"]
    parsed = commands.parse(["check", "--", "-odd.yaml"])
    assert [str(each) for each in parsed.recipes] == ["-odd.yaml"]
    assert parsed.further == ()


@pytest.mark.parametrize("word", ["--http-port=1", "--model-repository=/x", "--id=other", "--log-file"])
def test_an_option_that_recipe_sets_is_refused_with_what_to_do(word):
    with pytest.raises(UsageError, match="recipe sets --") as caught:
        installation.user_options([word])
    assert caught.value.hint
    with pytest.raises(UsageError, match="is none"):
        installation.user_options(["other.yaml"])


@pytest.mark.parametrize(
    ("version", "known"),
    [("", 2), ("2.51.0", 2), ("2.40.0", 2), ("2.39.0", 0), ("23.05-py3", 0), ("23.11-py3", 2), ("here:5000/a", 2)],
)
def test_shared_memory_traces_and_logging_are_closed_where_triton_can_close_them(version, known):
    words = installation.closing("a-secret", version)
    assert len(words) == known
    assert all(word.endswith("=shared-memory,trace,logging:recipe=a-secret") for word in words)


def closed(*further):
    setup = dataclasses.replace(place(Needs()), further=further)
    return [word for word in options(setup, "/models", setup.ports, "2.51.0") if "restricted" in word]


def test_nobody_knows_the_secret_of_a_server_and_a_users_own_option_takes_its_place():
    assert len({word.rpartition("=")[2] for word in (*closed(), *closed())}) == 2
    own = "--http-restricted-api=trace:admin=x"
    assert closed(own)[1:] == [own]
    assert closed(own)[0].startswith("--grpc-restricted-protocol=shared-memory,")
