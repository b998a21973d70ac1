"""The options with which every kind of server is started."""

from small_servers import place

from engine.server.installation import options
from engine.server.needs import Engine, Needs
from engine.server.ports import Ports


def of_engines(*engines):
    words = options(place(Needs(engines=engines)), "/models", Ports(8000, 8001, 8002))
    return [word for word in words if word.startswith("--backend-config=tensorrt,")]


def test_triton_may_run_the_code_inside_a_version_compatible_engine():
    assert of_engines(Engine("a", "10.13.0.35"), Engine("b", "10.13.0.35", version_compatible=True)) == [
        "--backend-config=tensorrt,version-compatible=true"
    ]
    assert of_engines(Engine("a", "10.13.0.35")) == []


def test_triton_loads_the_plugins_of_every_engine():
    engines = [Engine(name, "10.13.0.35", plugins=(f"{name}/1/plugins/x.so",)) for name in ("a", "b")]
    assert of_engines(*engines) == [
        "--backend-config=tensorrt,plugins=/models/a/1/plugins/x.so;/models/b/1/plugins/x.so"
    ]


def test_each_protocol_takes_an_address_of_ipv6_in_its_own_form():
    words = options(place(Needs()), "/models", Ports(8000, 8001, 8002, "::1"))
    assert [word for word in words if "-address=" in word] == [
        "--http-address=ipv6:::1", "--metrics-address=ipv6:::1", "--grpc-address=[::1]"
    ]  # fmt: skip
