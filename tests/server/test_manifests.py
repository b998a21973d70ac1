"""The manifests: a restricted namespace takes them, Knative too, images are never `latest`, a pod ends in order."""

import copy
import http.client
import http.server
import inspect
import re
import subprocess
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import front
import pod_security
import pods
import pytest
import yaml

from engine.server import manifests, ports, proxy
from engine.server.manifests import Deployment

DEPLOYMENT = Deployment("my-net", gpu=True, size=3 << 20, command=("tritonserver", "--model-repository=/models"))


def documents(text):
    return list(yaml.safe_load_all(text))


def of_kind(kind):
    [document] = [each for each in documents(manifests.kubernetes(DEPLOYMENT)) if each["kind"] == kind]
    return document["spec"]


def pod_specs():
    """The pods of both files, as Kubernetes gets them."""
    [inference] = documents(manifests.kserve(DEPLOYMENT))
    return {"kubernetes.yaml": of_kind("Deployment")["template"]["spec"], "kserve.yaml": inference["spec"]["predictor"]}


def containers(spec):
    return {each["name"]: each for each in spec["containers"]}


@pytest.mark.parametrize("file", ["kubernetes.yaml", "kserve.yaml"])
def test_a_restricted_namespace_takes_the_pods(file):
    assert pod_security.violations(pod_specs()[file]) == []


PLANTED = {
    "host namespaces": (("hostNetwork",), True),
    "volume types": (("volumes", 0), {"name": "host", "hostPath": {"path": "/"}}),
    "sysctls": (("securityContext",), {"sysctls": [{"name": "kernel.msgmax", "value": "1"}]}),
    "host process": (("securityContext",), {"windowsOptions": {"hostProcess": True}}),
    "AppArmor": (("containers", 1, "securityContext", "appArmorProfile"), {"type": "Unconfined"}),
    "SELinux": (("containers", 0, "securityContext", "seLinuxOptions"), {"type": "spc_t"}),
    "seccomp": (("containers", 1, "securityContext", "seccompProfile"), None),
    "not as root": (("containers", 0, "securityContext", "runAsNonRoot"), None),
    "user 0": (("containers", 1, "securityContext", "runAsUser"), 0),
    "privileged": (("containers", 0, "securityContext", "privileged"), True),
    "privilege escalation": (("containers", 1, "securityContext", "allowPrivilegeEscalation"), None),
    "capabilities": (("containers", 0, "securityContext", "capabilities"), {"drop": ["ALL"], "add": ["SYS_ADMIN"]}),
    "mount of /proc": (("containers", 1, "securityContext", "procMount"), "Unmasked"),
    "host ports": (("containers", 0, "ports", 0, "hostPort"), 80),
    "hosts of probes": (("containers", 1, "readinessProbe", "httpGet", "host"), "169.254.169.254"),
}


@pytest.mark.parametrize("rule", PLANTED)
def test_each_violation_of_the_profile_is_noticed(rule):
    spec = copy.deepcopy(pod_specs()["kubernetes.yaml"])
    *path, last = PLANTED[rule][0]
    target = spec
    for key in path:
        target = target[key]
    target[last] = PLANTED[rule][1]
    assert [each.partition(":")[0] for each in pod_security.violations(spec)] == [rule]


def test_each_rule_of_the_profile_has_a_violation():
    rules = re.findall(r'f"([^"{]+): \{', inspect.getsource(pod_security))
    assert len(set(rules)) > 12
    assert set(rules) == PLANTED.keys()


KINDS = ["Deployment", "Service", "NetworkPolicy", "PodDisruptionBudget", "HorizontalPodAutoscaler"]


def test_the_manifests_pass_the_schema_of_kubernetes():
    reason = "kubernetes-validate is not installed (the extra `dev-deploy`)"
    validate = pytest.importorskip("kubernetes_validate", reason=reason)
    checked = documents(manifests.kubernetes(DEPLOYMENT))
    assert [document["kind"] for document in checked] == KINDS
    predictor = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "x"}, "spec": pod_specs()["kserve.yaml"]}
    for document in [*checked, predictor]:
        validate.validate(document, validate.latest_version(), strict=True)


def test_what_has_no_schema_there_selects_the_service_and_names_its_port():
    [monitor] = documents(manifests.service_monitor(DEPLOYMENT))
    [service] = [each for each in documents(manifests.kubernetes(DEPLOYMENT)) if each["kind"] == "Service"]
    assert (monitor["apiVersion"], monitor["kind"]) == ("monitoring.coreos.com/v1", "ServiceMonitor")
    assert monitor["spec"].keys() == {"selector", "endpoints"}
    assert monitor["spec"]["selector"]["matchLabels"].items() <= service["metadata"]["labels"].items()
    [endpoint] = monitor["spec"]["endpoints"]
    assert endpoint["port"] in [port["name"] for port in service["spec"]["ports"]]


def test_ports_lead_from_the_service_to_the_proxy_and_the_policy_opens_no_other():
    deployment, service, policy = map(of_kind, ("Deployment", "Service", "NetworkPolicy"))
    both = containers(deployment["template"]["spec"])
    named = {port["name"]: port["containerPort"] for each in both.values() for port in each["ports"]}
    assert {port["name"]: (port["port"], named[port["targetPort"]]) for port in service["ports"]} == {
        "http": (8000, 8080), "grpc": (8001, 8081), "metrics": (8002, 8002)
    }  # fmt: skip
    assert {"--http-address=127.0.0.1", "--grpc-address=127.0.0.1"} < set(both["triton"]["args"])
    assert [port["port"] for port in policy["ingress"][0]["ports"]] == sorted(
        named.values(), key=[8080, 8081, 8002].index
    )
    assert policy["egress"] == []
    assert re.findall(r"listen (\d+)", proxy.nginx()) == ["8080", "8081"]


def test_selectors_find_the_pods():
    labels = of_kind("Deployment")["template"]["metadata"]["labels"]
    spread = of_kind("Deployment")["template"]["spec"]["topologySpreadConstraints"]
    selectors = [each["labelSelector"]["matchLabels"] for each in spread]
    selectors += [of_kind(kind)["selector"]["matchLabels"] for kind in ("Deployment", "PodDisruptionBudget")]
    selectors += [of_kind("Service")["selector"], of_kind("NetworkPolicy")["podSelector"]["matchLabels"]]
    assert selectors == [labels] * 6
    assert of_kind("HorizontalPodAutoscaler")["scaleTargetRef"]["name"] == DEPLOYMENT.name


def test_a_rollout_waits_and_a_pod_has_time_to_end():
    spec = of_kind("Deployment")
    assert spec["strategy"]["rollingUpdate"] == {"maxUnavailable": 0, "maxSurge": 1}
    assert "replicas" not in spec  # the autoscaler's number would be reset at each apply
    [asleep] = re.findall(r"sleep (\d+);", str(containers(spec["template"]["spec"])["proxy"]["lifecycle"]))
    [waits] = re.findall(r"worker_shutdown_timeout (\d+)s;", proxy.nginx())
    exit_timeout = 30  # Triton's default of --exit-timeout-secs
    assert spec["template"]["spec"]["terminationGracePeriodSeconds"] > int(asleep) + int(waits) + exit_timeout


def test_a_triton_that_fails_a_probe_does_not_wait_for_its_proxy_which_goes_on():
    spec = of_kind("Deployment")["template"]["spec"]
    triton = containers(spec)["triton"]
    assert "while [ -e /tmp/nginx.pid ]" in str(triton["lifecycle"]["preStop"])
    periods = [triton[probe]["terminationGracePeriodSeconds"] for probe in ("startupProbe", "livenessProbe")]
    assert max(periods) < 10 < spec["terminationGracePeriodSeconds"]


def test_a_request_that_the_proxy_waits_for_does_not_fail_the_liveness_probe():
    [waits] = set(re.findall(r"(?:proxy|grpc)_read_timeout (\d+)s;", proxy.nginx()))
    for spec in pod_specs().values():
        probe = spec["containers"][0]["livenessProbe"]
        command = probe["exec"]["command"]
        assert int(waits) < int(command[command.index("--timeout") + 1]) < probe["timeoutSeconds"]


def test_no_image_is_latest_and_none_can_be_pulled_by_accident():
    images = [each["image"] for spec in pod_specs().values() for each in spec["containers"]]
    assert images == ["registry.invalid/my-net:not-pushed"] * 4
    composed = yaml.safe_load(manifests.compose(DEPLOYMENT))["services"]
    assert [each["image"] for each in composed.values()] == ["my-net:local"] * 3
    assert [each.get("build") for each in composed.values()] == [None, ".", None]  # one image, built once


def test_knative_and_kserve_take_the_pod():
    """The rules that the docstring of `manifests.kserve` names the sources of, with Knative's default features."""
    spec = pod_specs()["kserve.yaml"]
    first, *others = spec["containers"]
    assert first["name"] == "kserve-container"
    assert [port["name"] for each in spec["containers"] for port in each.get("ports", [])] == ["http1"]
    assert first["readinessProbe"]["httpGet"]["port"] == first["ports"][0]["containerPort"] == 8080
    assert not any(key.endswith("Probe") for each in others for key in each)
    assert not any("lifecycle" in each for each in spec["containers"])
    assert "terminationGracePeriodSeconds" not in str(spec)
    assert spec.keys() == {"automountServiceAccountToken", "enableServiceLinks", "containers", "volumes"}
    assert {"shm", "tmp"} == {mount["name"] for each in spec["containers"] for mount in each["volumeMounts"]}


def test_compose_publishes_the_proxy_and_metrics_and_gives_triton_its_shared_memory():
    services = yaml.safe_load(manifests.compose(DEPLOYMENT))["services"]
    ports_of = {name: each["ports"] for name, each in services.items() if "ports" in each}
    assert ports_of == {"network": ["8000:8080", "8001:8081", "8002:8002"]}
    assert services["triton"]["shm_size"] == "1gb"


def test_compose_ends_the_proxy_before_triton_and_neither_owns_the_network_of_the_other():
    services = yaml.safe_load(manifests.compose(DEPLOYMENT))["services"]
    assert services["network"]["entrypoint"] == ["sleep", "infinity"]
    assert {services[name]["network_mode"] for name in ("triton", "proxy")} == {"service:network"}
    assert services["proxy"]["depends_on"] == ["triton"]
    [waits] = re.findall(r"worker_shutdown_timeout (\d+)s;", proxy.nginx())
    assert int(services["proxy"]["stop_grace_period"].removesuffix("s")) > int(waits)
    assert (services["proxy"]["stop_signal"], services["triton"].get("depends_on")) == ("SIGQUIT", None)


class Upstream(http.server.BaseHTTPRequestHandler):
    """A server behind the proxy; the model `slow` takes three seconds."""

    protocol_version = "HTTP/1.1"

    def do_POST(self):
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        time.sleep(3 if "slow" in self.path else 0)
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    do_GET = do_POST  # noqa: N815 - the name is that of http.server

    def log_message(self, *_):
        pass


@pytest.fixture
def drained(tmp_path_factory):
    """An nginx that takes one request at once: its port, what the manifests run before it ends, and its process."""
    if pods.NGINX is None:
        pytest.skip("nginx is not installed (apt: nginx-core)")
    upstream = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Upstream)
    threading.Thread(target=upstream.serve_forever).start()
    free = ports.free()
    text = proxy.nginx(
        http=f"127.0.0.1:{free.http}", grpc=f"127.0.0.1:{free.grpc}", triton_http=f"127.0.0.1:{upstream.server_port}",
        of_all=1,
    )  # fmt: skip
    with pods.folder_of_all() as folder:
        (folder / "nginx.conf").write_text(text.replace("/tmp/", f"{folder}/"))
        both = containers(pod_specs()["kubernetes.yaml"])
        words = {name: each["lifecycle"]["preStop"]["exec"]["command"][-1] for name, each in both.items()}
        here = {
            name: text.replace("/tmp/", f"{folder}/").replace("sleep 15", "sleep 2") for name, text in words.items()
        }
        assert "sleep 2" in here["proxy"]
        with subprocess.Popen([pods.NGINX, "-c", folder / "nginx.conf", "-g", "daemon off;"]) as process:
            while not (folder / "nginx.pid").exists() and process.poll() is None:
                time.sleep(0.05)
            yield free.http, here, process
            process.kill()
    upstream.shutdown()
    upstream.server_close()


def test_a_proxy_that_ends_tells_clients_to_connect_anew_and_answers_what_it_has_taken(drained):
    port, commands, process = drained
    kept, slow = (http.client.HTTPConnection("127.0.0.1", port, timeout=30) for _ in range(2))

    def ask(connection, model):
        connection.request("POST", f"/v2/models/{model}/infer", "x")
        response = connection.getresponse()
        assert (response.status, response.read()) == (200, b"x")
        return response.getheader("Connection")

    assert ask(kept, "fast") == "keep-alive"
    ending = {name: subprocess.Popen(["sh", "-c", words]) for name, words in commands.items()}
    time.sleep(0.5)
    assert ask(kept, "fast") == "close"
    time.sleep(0.7)
    assert ask(slow, "slow") == "close"  # it was sent before, and is answered after the proxy took its last connection
    assert ending["proxy"].wait(30) == ending["triton"].wait(30) == process.wait(30) == 0
    assert front.ask(port, "GET", "/v2/health/ready") is None


def test_a_proxy_that_is_full_is_ready(drained):
    port, _, _ = drained
    with ThreadPoolExecutor(1) as threads:
        slow = threads.submit(front.ask, port, "POST", "/v2/models/slow/infer", "x")
        time.sleep(0.5)
        assert front.ask(port, "POST", "/v2/models/fast/infer", "x") == 503
        assert front.ask(port, "GET", "/v2/health/ready") == 200
    assert slow.result() == 200
