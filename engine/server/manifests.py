"""Manifests: how Docker Compose, Kubernetes and KServe run the image of a package."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from engine.kit.triton.served import PROBE

_PORTS = {"http": 8000, "grpc": 8001, "metrics": 8002}
_READY = {"httpGet": {"path": "/v2/health/ready", "port": 8000}}
_PROBE = {"exec": {"command": ["python3", f"/models/{PROBE}"]}}
_MEBIBYTE = 1 << 20
_SERVER_MEBIBYTES = 2048
_SIZES_OF_MODEL = 2
"""The memory limit is a start for a user's own measurement: twice the package's files, and 2 GiB for the server."""


@dataclass(frozen=True)
class Deployment:
    """A package to deploy: a DNS name, whether it needs a GPU, and the size of its files in bytes."""

    name: str
    gpu: bool
    size: int

    @property
    def memory(self) -> str:
        """The memory limit in the form of Kubernetes, which is to be replaced by a measured one."""
        return f"{_SERVER_MEBIBYTES + _SIZES_OF_MODEL * -(-self.size // _MEBIBYTE)}Mi"


def compose(deployment: Deployment) -> str:
    """Return compose.yaml: `docker compose up` builds the image and serves it."""
    service: dict[str, Any] = {
        "build": ".",
        "image": deployment.name,
        "ports": [f"{port}:{port}" for port in _PORTS.values()],
        "shm_size": "1gb",
        "read_only": True,
        "tmpfs": ["/tmp"],  # noqa: S108 - a folder in the container
        "restart": "unless-stopped",
    }
    if deployment.gpu:
        device = {"driver": "nvidia", "count": 1, "capabilities": ["gpu"]}
        service["deploy"] = {"resources": {"reservations": {"devices": [device]}}}
    return _text("docker compose up", {"services": {deployment.name: service}})


def kubernetes(deployment: Deployment) -> str:
    """Return kubernetes.yaml: a Deployment and a Service."""
    labels = {"app": deployment.name}
    pod = {
        "metadata": {
            "labels": labels,
            "annotations": {"prometheus.io/scrape": "true", "prometheus.io/port": str(_PORTS["metrics"])},
        },
        "spec": _pod(deployment, "triton"),
    }
    service_ports = [{"name": name, "port": port, "targetPort": port} for name, port in _PORTS.items()]
    documents = (
        {
            "apiVersion": "apps/v1",
            "kind": "Deployment",
            "metadata": {"name": deployment.name, "labels": labels},
            "spec": {"replicas": 1, "selector": {"matchLabels": labels}, "template": pod},
        },
        {
            "apiVersion": "v1",
            "kind": "Service",
            "metadata": {"name": deployment.name, "labels": labels},
            "spec": {"selector": labels, "ports": service_ports},
        },
    )
    about = (
        f"kubectl apply -f kubernetes.yaml\n# Push the image, and replace `image: {deployment.name}` by its address."
    )
    return _text(f"{about}\n# The memory limit is a start: measure your load, and replace it.", *documents)


def kserve(deployment: Deployment) -> str:
    """Return kserve.yaml: an InferenceService whose predictor is the image."""
    service = {
        "apiVersion": "serving.kserve.io/v1beta1",
        "kind": "InferenceService",
        "metadata": {"name": deployment.name},
        "spec": {"predictor": _pod(deployment, "kserve-container", ports=("http",))},
    }
    about = f"kubectl apply -f kserve.yaml\n# Push the image, and replace `image: {deployment.name}` by its address."
    return _text(about, service)


def _pod(deployment: Deployment, container: str, *, ports: tuple[str, ...] = tuple(_PORTS)) -> dict[str, Any]:
    """Return the specification of a pod: no root, a file system that can only be read, probes and limits."""
    limits: dict[str, Any] = {"memory": deployment.memory}
    if deployment.gpu:
        limits["nvidia.com/gpu"] = 1
    return {
        "securityContext": {"runAsNonRoot": True, "runAsUser": 1000, "runAsGroup": 1000},
        "containers": [
            {
                "name": container,
                "image": deployment.name,
                "ports": [{"name": name, "containerPort": _PORTS[name]} for name in ports],
                "startupProbe": {**_READY, "periodSeconds": 2, "failureThreshold": 150},
                "readinessProbe": {**_READY, "periodSeconds": 5, "timeoutSeconds": 5},
                "livenessProbe": {**_PROBE, "periodSeconds": 5, "timeoutSeconds": 10, "failureThreshold": 2},
                "resources": {"requests": {"cpu": "1", "memory": deployment.memory}, "limits": limits},
                "securityContext": {
                    "allowPrivilegeEscalation": False,
                    "readOnlyRootFilesystem": True,
                    "capabilities": {"drop": ["ALL"]},
                },
                "volumeMounts": [{"name": "shm", "mountPath": "/dev/shm"}, {"name": "tmp", "mountPath": "/tmp"}],  # noqa: S108 - in the container
            }
        ],
        "volumes": [
            {"name": "shm", "emptyDir": {"medium": "Memory", "sizeLimit": "1Gi"}},
            {"name": "tmp", "emptyDir": {}},
        ],
    }


def _text(about: str, *documents: dict[str, Any]) -> str:
    """Return YAML documents below a comment."""
    import yaml

    return f"# {about}\n" + yaml.safe_dump_all(documents, sort_keys=False)
