"""Deployable: the files with which a package is deployed, beside its models: an image, and what runs the image."""

from __future__ import annotations

import json
import shlex
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from engine.client.curl import curl_line
from engine.client.model_metadata import ModelMetadata
from engine.kit.triton import config as configs
from engine.kit.triton.served import PROBE
from engine.server import image_tags
from engine.server.installation import Lacking, of_needs
from engine.server.repository_needs import Needs, needs_of

_MODELS = "/models"
_USER = 1000
"""The number of the user `triton-server` in Triton's images."""
_PORTS = {"http": 8000, "grpc": 8001, "metrics": 8002}
_READY = {"httpGet": {"path": "/v2/health/ready", "port": 8000}}
_PROBE = {"exec": {"command": ["python3", f"/models/{PROBE}"]}}
_MEBIBYTE = 1 << 20
_SERVER_MEBIBYTES = 2048
_SIZES_OF_MODEL = 2
"""The memory limit is a start for a user's own measurement: twice the package's files, and 2 GiB for the server."""


@dataclass(frozen=True)
class PackageOrigin:
    """What a package was built from: the model's source and revision, its task, and the runtime that runs it."""

    source: str
    revision: str
    task: str
    runtime: str


def write(out: Path, name: str, *, image: str | None, origin: PackageOrigin) -> None:
    """Write the deployment's files into a package. `name` is the model that clients call.

    `image` is the server's image in a recipe. Where no image is known to load the package's engines, only README.md is
    written, and it says why. Raises StepError for a configuration that cannot be read.
    """
    needs = needs_of(out)
    try:
        base = image_tags.tag_for(needs.engines, image).address
    except Lacking as lacking:
        (out / "README.md").write_text(_readme(out, name, origin, no_image=str(lacking)), "utf-8")
        return
    deployment = Deployment(
        name=name.replace("_", "-").replace(".", "-").lower(),
        gpu=bool(needs.gpu),
        size=sum(path.stat().st_size for path in out.rglob("*") if path.is_file()),
    )
    files = {
        "README.md": _readme(out, name, origin, no_image=None),
        "Dockerfile": _dockerfile(base, needs),
        "compose.yaml": compose(deployment),
        "kubernetes.yaml": kubernetes(deployment),
        "kserve.yaml": kserve(deployment),
    }
    for file, text in files.items():
        (out / file).write_text(text, "utf-8")


def _dockerfile(base: str, needs: Needs) -> str:
    """Return the Dockerfile of an image that serves the package as a user without root."""
    words = " \\\n      ".join(shlex.quote(line) for line in sorted(needs.requirements))
    install = [f"RUN pip install --no-cache-dir \\\n      {words}"] if words else []
    command = ["tritonserver", f"--model-repository={_MODELS}", *of_needs(needs, _MODELS)]
    probe = json.dumps(["python3", f"{_MODELS}/{PROBE}"])
    lines = [
        "# docker build --tag NAME .",
        f"FROM {base}",
        *install,
        f"COPY . {_MODELS}",
        f"USER {_USER}",
        "# HTTP, gRPC and Prometheus' metrics.",
        "EXPOSE 8000 8001 8002",
        f"HEALTHCHECK --start-period=120s --interval=10s --timeout=10s CMD {probe}",
        f"CMD {json.dumps(command)}",
    ]
    return "\n".join(lines) + "\n"


def _readme(out: Path, name: str, origin: PackageOrigin, *, no_image: str | None) -> str:
    from google.protobuf import json_format

    config = configs.read(out / name, allow_unknown_field=True)
    entry = ModelMetadata.of_config(json_format.MessageToDict(config, preserving_proto_field_name=True))
    tensors = [
        "| tensor | type and shape |",
        "|---|---|",
        *(f"| input `{each.name}`{' (optional)' if each.optional else ''} | {_shape(str(each))} |"
          for each in entry.inputs),
        *(f"| output `{each.name}` | {_shape(str(each))} |" for each in entry.outputs),
    ]  # fmt: skip
    run = (
        [f"There is no Dockerfile: {no_image}. Any Triton that loads the engine serves this folder:", "",
         "```sh", "tritonserver --model-repository=.", "```"]
        if no_image is not None
        else ["```sh", f"docker build --tag {name} .        # Triton's image with the package and its requirements",
              "docker compose up              # or on this machine, by compose.yaml",
              "kubectl apply -f kubernetes.yaml   # a Deployment and a Service, once the image is pushed",
              "kubectl apply -f kserve.yaml       # or KServe's InferenceService", "```"]
    )  # fmt: skip
    lines = [
        f"# {name}",
        "",
        f"A model repository for NVIDIA Triton. Clients call `{name}`, task: {origin.task}.",
        "",
        "## Ask it",
        "",
        "```sh",
        curl_line("http://127.0.0.1:8000", entry),
        "```",
        "",
        *tensors,
        "",
        "## How it was built",
        "",
        f"- model: `{origin.source}`, revision: {origin.revision}",
        f"- runtime: `{origin.runtime}`",
        "- models in this folder: " + ", ".join(f"`{each}`" for each in needs_of(out).models),
        "- licences: `NOTICE`; everything that went in: `sbom.cdx.json`",
        "",
        "## Run it",
        "",
        *run,
        "",
        f"`python3 {PROBE} --url http://127.0.0.1:8000` tells whether each model answers (exit code 0 or 1).",
        "Metrics for Prometheus are on port 8002, at `/metrics`.",
    ]
    return "\n".join(lines) + "\n"


def _shape(described: str) -> str:
    """Return a tensor's type and shape, without the name that stands in front of them."""
    return described.partition(": ")[2]


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
    import yaml

    return f"# {about}\n" + yaml.safe_dump_all(documents, sort_keys=False)
