"""Manifests: what runs the image of a package, on one machine (Compose), on Kubernetes and on KServe."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from engine.kit.triton.served import PROBE

MODELS = "/models"
NGINX = "nginx.conf"
USER = 1000
"""The number of the user `triton-server` in Triton's images."""
LOCAL_TAG = "local"
_NOT_PUSHED = (
    "No registry has this image: `recipe package RECIPE --push REGISTRY` pushes it, and writes this file anew."
)
_NO_REGISTRY = "registry.invalid"
"""A host that no network has. Source: RFC 2606."""
FILES = ("kubernetes.yaml", "servicemonitor.yaml", "kserve.yaml")
"""The files that name the image of a registry."""
_PORTS = {"http": 8080, "grpc": 8081, "metrics": 8002}
"""Where a pod listens: the proxy for clients, Triton for Prometheus. Triton's own 8000 and 8001 are on loopback."""
_OUTSIDE = {"http": 8000, "grpc": 8001, "metrics": 8002}
"""The ports of the Service and of Compose: Triton's usual ones, whatever stands behind them."""
_LOOPBACK = ("--http-address=127.0.0.1", "--grpc-address=127.0.0.1", "--metrics-address=0.0.0.0")
_NGINX = ("nginx", "-c", f"{MODELS}/{NGINX}", "-g", "daemon off;")
_PROBE = ("python3", f"{MODELS}/{PROBE}")
_REQUEST_SECONDS = 35
"""How long the liveness probe waits for a busy model: longer than the proxy waits for Triton (30 s, nginx.conf)."""
LIVENESS = (*_PROBE, "--timeout", str(_REQUEST_SECONDS))
LIVENESS_SECONDS = _REQUEST_SECONDS + 5
_SICK_SECONDS = 5
"""The end of a Triton that failed a probe. `preStop` runs then, too, and the proxy, for which it waits, does not end.

Source: Kubernetes, the fields `preStop` of Lifecycle and `terminationGracePeriodSeconds` of Probe.
"""
_PID, _DRAINING = "/tmp/nginx.pid", "/tmp/draining"  # noqa: S108 - in the pod's volume
_UNTIL_PROXY_ENDED = f"while [ -e {_PID} ]; do sleep 0.5; done"
_ENDPOINT_SECONDS = 15
"""How long the proxy takes new connections after its pod began to end: until every node knows the new endpoints."""
_GRACE_SECONDS = 90
"""The end of a pod: `_ENDPOINT_SECONDS`, 40 s for the last answer and for streams, 30 s for Triton's exit, and room."""
_WIDTH = 120
_MEBIBYTE = 1 << 20
_SERVER_MEBIBYTES = 2048
_SIZES_OF_MODEL = 2
"""The memory limit is a start for a user's own measurement: twice the package's files, and 2 GiB for the server."""
_SECURITY = {
    "runAsNonRoot": True,
    "runAsUser": USER,
    "runAsGroup": USER,
    "allowPrivilegeEscalation": False,
    "readOnlyRootFilesystem": True,
    "capabilities": {"drop": ["ALL"]},
    "seccompProfile": {"type": "RuntimeDefault"},
}
"""The security context of each container. Source: Pod Security Standards, profile "restricted", of Kubernetes.

It stands at the containers, because Knative takes none of a pod.
"""


Document = tuple[str, dict[str, Any]]
"""A comment, and the content below it."""


@dataclass(frozen=True)
class Deployment:
    """A package to deploy: a DNS name, whether it needs a GPU, its size in bytes, and the command of its server."""

    name: str
    gpu: bool
    size: int
    command: tuple[str, ...]

    @property
    def image(self) -> str:
        """The address until the image is pushed and has a digest: nobody pulls another image by accident."""
        return f"{_NO_REGISTRY}/{self.name}:not-pushed"

    @property
    def memory(self) -> str:
        """The memory limit in the form of Kubernetes, which is to be replaced by a measured one."""
        return f"{_SERVER_MEBIBYTES + _SIZES_OF_MODEL * -(-self.size // _MEBIBYTE)}Mi"


def compose(deployment: Deployment) -> str:
    """Return compose.yaml: `docker compose up` builds the image, and serves it behind the proxy.

    Compose starts a service after those that it depends on, and stops it before them. A service of the others' network
    depends on the owner of that network, and loses it for good when the owner's container ends: so the owner does
    nothing else. Sources: Compose's documentation, "Control startup and shutdown order"; docker/compose#10263.
    """
    each: dict[str, Any] = {
        "image": f"{deployment.name}:{LOCAL_TAG}",
        "read_only": True,
        "tmpfs": ["/tmp"],  # noqa: S108 - a folder in the container
        "cap_drop": ["ALL"],
        "security_opt": ["no-new-privileges:true"],
        "restart": "unless-stopped",
    }
    ports = [f"{_OUTSIDE[name]}:{port}" for name, port in _PORTS.items()]
    unchecked = {"healthcheck": {"disable": True}}
    shared = {"network_mode": "service:network"}
    network = {**each, "entrypoint": ["sleep", "infinity"], "ports": ports, "stop_signal": "SIGKILL", **unchecked}
    triton = {"build": ".", **each, "command": [*deployment.command, *_LOOPBACK], **shared, "shm_size": "1gb"}
    quit_ = {"depends_on": ["triton"], "stop_signal": "SIGQUIT", "stop_grace_period": "45s"}
    proxy = {**each, "entrypoint": list(_NGINX), **shared, **quit_, **unchecked}
    if deployment.gpu:
        device = {"driver": "nvidia", "count": 1, "capabilities": ["gpu"]}
        triton["deploy"] = {"resources": {"reservations": {"devices": [device]}}}
    about = """
        docker compose up
        Clients reach the proxy. Triton listens on loopback alone, but for its metrics.
        `network` holds the network of both, so each of them may restart. `docker compose stop` stops the proxy first,
        which answers what it has taken, and then Triton.
        shm_size: Python models pass tensors through /dev/shm.
    """
    return _text((about, {"services": {"network": network, "triton": triton, "proxy": proxy}}))


def kubernetes(deployment: Deployment) -> str:
    """Return kubernetes.yaml: all that a namespace of the profile "restricted" needs to serve the package."""
    return _text(
        _deployment(deployment), _service(deployment), _network_policy(deployment), _disruption_budget(deployment),
        _autoscaler(deployment),
    )  # fmt: skip


def pushed(text: str, address: str) -> str:
    """Return a manifest with the address of the pushed image."""
    return re.sub(rf"{re.escape(_NO_REGISTRY)}/\S+", address, text.replace(f"# {_NOT_PUSHED}\n", ""))


def _deployment(deployment: Deployment) -> Document:
    about = f"""
        kubectl apply -f kubernetes.yaml
        {_NOT_PUSHED}
        The HorizontalPodAutoscaler says how many pods there are. A rollout starts a pod before it ends one, so it
        needs room (and a GPU) for one more. The memory limit is a start: measure your load, and replace it.
        A pod ends in this order. The proxy answers, and tells clients to connect anew, until every node knows the new
        endpoints. Then it takes no connection, and answers what it has taken. Triton ends last.
        A Triton that fails a probe gets its own, short time to end: its proxy does not end, and is not waited for.
        The volume `shm` is /dev/shm, through which Python models pass tensors. It counts as memory of `triton`.
    """
    labels = {"app": deployment.name}
    selector = {"matchLabels": labels}
    spread = [
        {"maxSkew": 1, "topologyKey": key, "whenUnsatisfiable": "ScheduleAnyway", "labelSelector": selector}
        for key in ("kubernetes.io/hostname", "topology.kubernetes.io/zone")
    ]
    pod = {
        "terminationGracePeriodSeconds": _GRACE_SECONDS,
        "topologySpreadConstraints": spread,
        **_pod([_triton(deployment), _proxy(deployment)]),
    }
    scrape = {"prometheus.io/scrape": "true", "prometheus.io/port": str(_PORTS["metrics"])}
    spec = {
        "minReadySeconds": 5,
        "strategy": {"type": "RollingUpdate", "rollingUpdate": {"maxUnavailable": 0, "maxSurge": 1}},
        "selector": selector,
        "template": {"metadata": {"labels": labels, "annotations": scrape}, "spec": pod},
    }
    return _document(about, "apps/v1", "Deployment", deployment, spec)


def _service(deployment: Deployment) -> Document:
    about = "Clients of HTTP use port 8000, of gRPC 8001: both lead to the proxy."
    protocols = {"http": "http", "grpc": "kubernetes.io/h2c", "metrics": "http"}
    ports = [
        {"name": name, "port": port, "targetPort": name, "appProtocol": protocols[name]}
        for name, port in _OUTSIDE.items()
    ]
    return _document(about, "v1", "Service", deployment, {"selector": {"app": deployment.name}, "ports": ports})


def _network_policy(deployment: Deployment) -> Document:
    about = "Nobody reaches other ports, and the pods open no connection. Narrow it by `from:`."
    spec = {
        "podSelector": {"matchLabels": {"app": deployment.name}},
        "policyTypes": ["Ingress", "Egress"],
        "ingress": [{"ports": [{"protocol": "TCP", "port": port} for port in _PORTS.values()]}],
        "egress": [],
    }
    return _document(about, "networking.k8s.io/v1", "NetworkPolicy", deployment, spec)


def _disruption_budget(deployment: Deployment) -> Document:
    about = "A drain of nodes takes one pod at a time."
    spec = {"maxUnavailable": 1, "selector": {"matchLabels": {"app": deployment.name}}}
    return _document(about, "policy/v1", "PodDisruptionBudget", deployment, spec)


def _autoscaler(deployment: Deployment) -> Document:
    about = """
        Two pods survive the loss of a node. More are started while requests wait. For that, Triton's metric must be in
        the API custom.metrics.k8s.io, summed by pod: prometheus-adapter, for example, can do it.
    """
    pending = {
        "metric": {"name": "nv_inference_pending_request_count"},
        "target": {"type": "AverageValue", "averageValue": "8"},
    }
    spec = {
        "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": deployment.name},
        "minReplicas": 2,
        "maxReplicas": 8,
        "metrics": [{"type": "Pods", "pods": pending}],
    }
    return _document(about, "autoscaling/v2", "HorizontalPodAutoscaler", deployment, spec)


def service_monitor(deployment: Deployment) -> str:
    """Return servicemonitor.yaml, a file of its own: a cluster without Prometheus' operator refuses the kind."""
    about = """
        kubectl apply -f servicemonitor.yaml, where the operator of Prometheus runs
        A Prometheus reads only what its `serviceMonitorSelector` selects. That of the chart kube-prometheus-stack wants
        the label `release: NAME`, with the name of its release: add it here.
    """
    endpoints = [{"port": "metrics", "interval": "15s"}]
    spec = {"selector": {"matchLabels": {"app": deployment.name}}, "endpoints": endpoints}
    return _text(_document(about, "monitoring.coreos.com/v1", "ServiceMonitor", deployment, spec))


def kserve(deployment: Deployment) -> str:
    """Return kserve.yaml: an InferenceService whose predictor is the image.

    Sources: knative/serving, pkg/apis/serving/fieldmask.go and k8s_validation.go, for one port in all containers with
    the name `http1` or `h2c`, no `lifecycle`, no probe of a container without the port, and in older releases no
    `terminationGracePeriodSeconds` of a probe; kserve/kserve, predictor.go and predictor_custom.go, for
    `kserve-container` as the first container.
    """
    about = f"""
        kubectl apply -f kserve.yaml
        {_NOT_PUSHED}
        Knative takes one port, which is the proxy's: clients use HTTP. For gRPC in its place write `name: h2c`,
        `containerPort: 8081`, and the readiness probe `grpc: {{port: 8081}}`.
        Knative itself lets a pod answer what it has taken, and refuses `lifecycle`. In KServe's mode Standard, copy
        `lifecycle` and each `terminationGracePeriodSeconds` from kubernetes.yaml: else a rollout loses requests.
    """
    triton, proxy = _triton(deployment), _proxy(deployment)
    for container in (triton, proxy):
        del container["lifecycle"], container["ports"]
    del proxy["readinessProbe"]
    for probe in ("startupProbe", "livenessProbe"):
        del triton[probe]["terminationGracePeriodSeconds"]
    port = _PORTS["http"]
    triton |= {"name": "kserve-container", "ports": [{"name": "http1", "containerPort": port}], **_readiness(port)}
    predictor = {"predictor": _pod([triton, proxy])}
    return _text(_document(about, "serving.kserve.io/v1beta1", "InferenceService", deployment, predictor))


def _pod(containers: list[dict[str, Any]]) -> dict[str, Any]:
    """Return a pod that has no token of the cluster; its containers share /tmp."""
    return {
        "automountServiceAccountToken": False,
        "enableServiceLinks": False,
        "containers": containers,
        "volumes": [
            {"name": "shm", "emptyDir": {"medium": "Memory", "sizeLimit": "1Gi"}},
            {"name": "tmp", "emptyDir": {}},
        ],
    }


def _triton(deployment: Deployment) -> dict[str, Any]:
    """Return the container of the server, which outlives the proxy."""
    limits: dict[str, Any] = {"memory": deployment.memory}
    if deployment.gpu:
        limits["nvidia.com/gpu"] = 1
    return {
        "name": "triton",
        "image": deployment.image,
        "args": [*deployment.command, *_LOOPBACK],
        "ports": [{"name": "metrics", "containerPort": _PORTS["metrics"]}],
        "startupProbe": _probe(_PROBE, timeout=10, failures=60),
        "livenessProbe": _probe(LIVENESS, timeout=LIVENESS_SECONDS, failures=2),
        "lifecycle": _before_stop(_UNTIL_PROXY_ENDED),
        "resources": {
            "requests": {"cpu": "1", "memory": deployment.memory, "ephemeral-storage": "256Mi"},
            "limits": limits,
        },
        "securityContext": _SECURITY,
        "volumeMounts": [{"name": "shm", "mountPath": "/dev/shm"}, {"name": "tmp", "mountPath": "/tmp"}],  # noqa: S108 - in the container
    }


def _proxy(deployment: Deployment) -> dict[str, Any]:
    """Return the container of nginx, the only one that clients reach."""
    last = f'touch {_DRAINING}; sleep {_ENDPOINT_SECONDS}; kill -QUIT "$(cat {_PID})"; {_UNTIL_PROXY_ENDED}'
    return {
        "name": "proxy",
        "image": deployment.image,
        "command": list(_NGINX),
        "ports": [{"name": name, "containerPort": _PORTS[name]} for name in ("http", "grpc")],
        **_readiness("http"),
        "lifecycle": _before_stop(last),
        "resources": {
            "requests": {"cpu": "100m", "memory": "64Mi", "ephemeral-storage": "64Mi"},
            "limits": {"memory": "256Mi"},
        },
        "securityContext": _SECURITY,
        "volumeMounts": [{"name": "tmp", "mountPath": "/tmp"}],  # noqa: S108 - in the container
    }


def _probe(command: Sequence[str], *, timeout: int, failures: int) -> dict[str, Any]:
    """Return a probe of Triton that runs a command every five seconds. `timeout` is in seconds."""
    return {
        "exec": {"command": [*command]},
        "periodSeconds": 5,
        "timeoutSeconds": timeout,
        "failureThreshold": failures,
        "terminationGracePeriodSeconds": _SICK_SECONDS,
    }


def _readiness(port: int | str) -> dict[str, Any]:
    probe = {"httpGet": {"path": "/v2/health/ready", "port": port}, "periodSeconds": 5, "timeoutSeconds": 5}
    return {"readinessProbe": probe}


def _before_stop(words: str) -> dict[str, Any]:
    return {"preStop": {"exec": {"command": ["sh", "-c", words]}}}


def _document(about: str, version: str, kind: str, deployment: Deployment, spec: dict[str, Any]) -> Document:
    """Return a document of Kubernetes under its comment. The label is what selectors look for."""
    metadata = {"name": deployment.name, "labels": {"app": deployment.name}}
    return about, {"apiVersion": version, "kind": kind, "metadata": metadata, "spec": spec}


def _text(*documents: Document) -> str:
    """Return documents of YAML, each under its comment."""
    import yaml

    class Plain(yaml.SafeDumper):
        """What stands twice is written twice: anchors are no help to whoever edits the file."""

        def ignore_aliases(self, data: object) -> bool:  # noqa: ARG002 - PyYAML's signature
            return True

    texts = []
    for about, content in documents:
        comment = textwrap.indent(textwrap.dedent(about).strip(), "# ")
        texts.append(f"{comment}\n{yaml.dump(content, Dumper=Plain, sort_keys=False, width=_WIDTH)}")
    return "---\n".join(texts)
