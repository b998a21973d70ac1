"""Deployable: the files with which a package is deployed, beside its models: an image, and what runs the image."""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from engine import digest
from engine.client.curl import curl_line
from engine.client.model_metadata import ModelMetadata, entries
from engine.kit.triton import config as configs
from engine.kit.triton.served import PROBE
from engine.runtimes.triton_images import ImageTag
from engine.runtimes.triton_tensors import IMAGE, TEXT
from engine.server import image_tags, manifests, proxy
from engine.server.installation import Lacking, closing, of_needs
from engine.server.manifests import MODELS, Deployment
from engine.server.repository_needs import Needs, needs_of

_TEXTS, _TENSORS = "96k", "4m"
"""The largest body of a request. JSON of 96 KiB cannot be nested so deep that it ends Triton; images need more."""
_OF_ONE_CLIENT, _RATE = 64, 2000
"""Requests of one address, at once and in a second. In a cluster, one address is a service or an ingress."""
_RUN = """\
```sh
docker compose up                       # on this machine: the server behind a proxy
recipe package RECIPE --push REGISTRY   # the image in a registry; in deploy/, the manifests with its digest
kubectl apply -f kubernetes.yaml        # on Kubernetes: in each pod the server behind a proxy
kubectl apply -f servicemonitor.yaml    # where the operator of Prometheus is to read the metrics
kubectl apply -f kserve.yaml            # or KServe's InferenceService
```

Clients use port 8000 for HTTP, and 8001 for gRPC. The limits are those of the proxy, `nginx.conf`.
Without `recipe`: `docker build --tag REGISTRY/NAME:TAG .`, push it, and write its digest into the manifests."""
_LONGEST_NAME = 63 - len("-predictor-default")
"""The longest name of a Service is a DNS label; KServe makes one with this end. Source: RFC 1035, 2.3.4."""
_LABEL = re.compile(r"[a-z]([-a-z0-9]*[a-z0-9])?")
_DIGEST_LENGTH = 8
# nginx-light of Ubuntu 22.04 has neither limit_conn nor limit_req.
_NGINX = (
    "RUN apt-get update \\",
    " && apt-get install --yes --no-install-recommends nginx-core \\",
    " && rm -rf /var/lib/apt/lists/*",
)


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
    models = {each: _metadata(out / each) for each in needs.models}
    entry = models[name]
    try:
        base = image_tags.tag_for(needs.engines, image)
    except Lacking as lacking:
        (out / "README.md").write_text(_readme(entry, needs, origin, no_image=str(lacking)), "utf-8")
        return
    deployment = Deployment(
        name=dns_name(name),
        gpu=bool(needs.gpu),
        size=sum(path.stat().st_size for path in out.rglob("*") if path.is_file()),
        command=("tritonserver", f"--model-repository={MODELS}", *of_needs(needs, MODELS)),
    )
    files = {
        "README.md": _readme(entry, needs, origin, no_image=None),
        "Dockerfile": _dockerfile(base, needs, deployment.command),
        manifests.NGINX: proxy.nginx(
            of_one_client=_OF_ONE_CLIENT,
            rate=_RATE,
            body=_TEXTS if entry.input(TEXT) and not entry.input(IMAGE) else _TENSORS,
            models=f"({'|'.join(re.escape(each.name) for each in entries([*models.values()]))})",
        ),
        "compose.yaml": manifests.compose(deployment),
        "kubernetes.yaml": manifests.kubernetes(deployment),
        "servicemonitor.yaml": manifests.service_monitor(deployment),
        "kserve.yaml": manifests.kserve(deployment),
    }
    for file, text in files.items():
        (out / file).write_text(text, "utf-8")


def _metadata(model: Path) -> ModelMetadata:
    from google.protobuf import json_format

    config = configs.read(model, allow_unknown_field=True)
    return ModelMetadata.of_config(json_format.MessageToDict(config, preserving_proto_field_name=True))


def dns_name(model: str) -> str:
    """Return the name of a model's objects in Kubernetes, which is also that of its image: a DNS label.

    Underscores become dashes. Where more than that is lost, a digest of the model's name stands at the end, also where
    that name itself has dashes: so two models never get the same name.
    """
    label = model.replace("_", "-")
    if _LABEL.fullmatch(label) and "-" not in model and len(label) <= _LONGEST_NAME:
        return label
    label = re.sub(r"[^a-z0-9]+", "-", model.lower()).strip("-")
    label = label if label[:1].isalpha() else f"model-{label}"
    kept = label[: _LONGEST_NAME - _DIGEST_LENGTH - 1].strip("-")
    return f"{kept}-{digest.of_bytes(model.encode())[:_DIGEST_LENGTH]}"


def _dockerfile(base: ImageTag, needs: Needs, command: Sequence[str]) -> str:
    """Return the Dockerfile of an image that has the server and the proxy, for a user without root.

    The image alone starts the server without the proxy, so the endpoints that change the server are closed by a secret
    that each start draws.
    """
    words = " \\\n      ".join(shlex.quote(line) for line in sorted(needs.requirements))
    install = [f"RUN pip install --no-cache-dir \\\n      {words}"] if words else []
    probe = f"--timeout={manifests.LIVENESS_SECONDS}s CMD {json.dumps(manifests.LIVENESS)}"
    closed = closing("$(cat /proc/sys/kernel/random/uuid)", base.release)
    alone = " ".join(["exec", shlex.join(command), *closed])
    lines = [
        f"# docker build --tag NAME:{manifests.LOCAL_TAG} .",
        f"FROM {base.address}",
        "# The proxy of the manifests, in the version that the image's Ubuntu has, with its security updates.",
        "# hadolint ignore=DL3008",
        *_NGINX,
        *install,
        "# A package may be written under a umask of 077. Docker's builder before BuildKit has no --chmod.",
        f"COPY --chmod=755 . {MODELS}",
        f"USER {manifests.USER}",
        "# Triton's HTTP, gRPC and metrics for Prometheus; the proxy's HTTP and gRPC.",
        "EXPOSE 8000 8001 8002 8080 8081",
        f"HEALTHCHECK --start-period=120s --interval=10s {probe}",
        f"CMD {json.dumps(['sh', '-c', alone])}",
    ]
    return "\n".join(lines) + "\n"


def _readme(entry: ModelMetadata, needs: Needs, origin: PackageOrigin, *, no_image: str | None) -> str:
    tensors = [
        "| tensor | type and shape |",
        "|---|---|",
        *(f"| input `{each.name}`{' (optional)' if each.optional else ''} | {_shape(str(each))} |"
          for each in entry.inputs),
        *(f"| output `{each.name}` | {_shape(str(each))} |" for each in entry.outputs),
    ]  # fmt: skip
    without_image = f"""\
There is no Dockerfile: {no_image}. Any Triton that loads the engine serves this folder:

```sh
tritonserver --model-repository=.
```"""
    lines = [
        f"# {entry.name}",
        "",
        f"A model repository for NVIDIA Triton. Clients call `{entry.name}`, task: {origin.task}.",
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
        "- models in this folder: " + ", ".join(f"`{each}`" for each in needs.models),
        "- licences: `NOTICE`; everything that went in: `sbom.cdx.json`",
        "",
        "## Run it",
        "",
        _RUN if no_image is None else without_image,
        "",
        f"`python3 {PROBE}` tells, beside the server, whether each model answers (exit code 0 or 1). In the container",
        f"`triton` it is in `{MODELS}`.",
        "Metrics for Prometheus are on port 8002, at `/metrics`.",
    ]
    return "\n".join(lines) + "\n"


def _shape(described: str) -> str:
    """Return a tensor's type and shape, without the name that stands in front of them."""
    return described.partition(": ")[2]
