"""Options of tritonserver that docs/serving.md shows, each tried on a real server with a package."""

import datetime as dt
import ipaddress
import json
import time
import urllib.request

import graphs
import numpy as np
import pytest
import triton_server
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID
from tritonclient import grpc
from tritonclient.utils import InferenceServerException

from engine.kit.triton.serving import Serving
from engine.steps.package import Package

pytestmark = [pytest.mark.slow, pytest.mark.whole("test_triton_refuses.py loads what the rules accept")]


def certificate(folder):
    """Write a key and a certificate that it signs for this machine."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "localhost")])
    now = dt.datetime.now(dt.UTC)
    names = x509.SubjectAlternativeName([x509.DNSName("localhost"), x509.IPAddress(ipaddress.ip_address("127.0.0.1"))])
    signed = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - dt.timedelta(days=1))
        .not_valid_after(now + dt.timedelta(days=1))
        .add_extension(names, critical=False)
        .sign(key, hashes.SHA256())
    )
    plain = serialization.NoEncryption()
    pem = serialization.Encoding.PEM
    (folder / "server.key").write_bytes(key.private_bytes(pem, serialization.PrivateFormat.PKCS8, plain))
    (folder / "server.crt").write_bytes(signed.public_bytes(pem))


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("options")


@pytest.fixture(scope="module")
def server(folder, environment):
    """One server with all the options of the page."""
    certificate(folder)
    model = graphs.write(folder / "layers", graphs.layers())
    limited = [{"count": 1, "kind": "KIND_CPU", "rate_limiter": {"resources": [{"name": "R1", "count": 1}]}}]
    fields = {"instance_group": limited, "response_cache": {"enable": True}}
    serving = Serving(model_name="layers", ensemble="layers_all", largest={"batch": 8}, fields=fields)
    Package(serving=serving).run(folder / "package", validated=model, checkpoint=model)
    options = [
        "--grpc-use-ssl=true",
        f"--grpc-server-cert={folder / 'server.crt'}",
        f"--grpc-server-key={folder / 'server.key'}",
        "--trace-config=level=TIMESTAMPS",
        "--trace-config=rate=1",
        "--trace-config=mode=triton",
        f"--trace-config=triton,file={folder / 'trace.json'}",
        "--trace-config=triton,log-frequency=1",
        "--rate-limit=execution_count",
        "--rate-limit-resource=R1:1",
        "--log-format=ISO8601",
        "--log-verbose=1",
        "--metrics-config=summary_latencies=true",
    ]
    with triton_server.serving(environment, folder / "package", further=options) as running:
        yield running


def ask(server, folder, value=1.0, **credentials):
    credentials = credentials or {"ssl": True, "root_certificates": str(folder / "server.crt")}
    with grpc.InferenceServerClient(server.grpc, **credentials) as client:
        tensors = triton_server.inputs(x=np.full((1, 64), value, np.float32))
        return client.infer("layers", tensors, client_timeout=30).as_numpy("y")


def metrics(server):
    with urllib.request.urlopen(f"http://{server.metrics}/metrics", timeout=30) as answer:
        return answer.read().decode()


def within_a_minute(look):
    for _ in range(120):
        if look():
            return True
        time.sleep(0.5)
    return False


def test_grpc_is_encrypted(server, folder):
    assert ask(server, folder).shape[0] == 1
    with pytest.raises(InferenceServerException):
        ask(server, folder, ssl=False)


def test_requests_are_traced(server, folder):
    ask(server, folder, 2.0)

    def traced():
        files = list(folder.glob("trace.json*"))
        return any("REQUEST_START" in file.read_text() for file in files)

    assert within_a_minute(traced)


def test_the_response_cache_answers_a_request_that_came_before(server, folder):
    for _ in range(3):
        ask(server, folder, 3.0)

    def hits():
        lines = [line for line in metrics(server).splitlines() if line.startswith("nv_cache_num_hits_per_model")]
        return sum(float(line.split()[-1]) for line in lines) >= 2

    assert within_a_minute(hits)


def test_the_metrics_have_quantiles_of_latencies(server, folder):
    ask(server, folder)
    lines = metrics(server).splitlines()
    assert any("_summary" in line and 'model="layers"' in line and 'quantile="0.99"' in line for line in lines)


def test_the_log_has_dates_as_the_standard_writes_them(server):
    lines = server.log.read_text(errors="replace").splitlines()
    assert any(line.startswith(f"{dt.datetime.now(dt.UTC):%Y-}") for line in lines), lines[:5]


def test_a_model_with_a_resource_of_the_rate_limiter_runs(server, folder):
    with urllib.request.urlopen(f"http://{server.http}/v2/models/layers/config", timeout=30) as answer:
        [group] = json.load(answer)["instance_group"]
    assert group["rate_limiter"]["resources"][0]["name"] == "R1"
    assert ask(server, folder, 4.0).shape[0] == 1
