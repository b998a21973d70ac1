"""Served: the lines and the JSON fields that describe a running server."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from engine.report import grid
from engine.report.results import shown
from engine.server import Server
from engine.server.installation import KIND_NAMES

STAND_IN = (
    "Models are answered by stand-ins for Triton's own backends: the same answers, not the same speed (docs/serving.md)"
)


def lines(server: Server, why: str, curl: Mapping[str, str]) -> list[str]:
    """Return the lines that are printed for people once all models are ready; `curl` has each model's curl command."""
    models = [(name, state.state) for name, state in sorted(server.models.items())]
    addresses = [
        ("HTTP", f"http://{server.http}"),
        ("gRPC", f"grpc://{server.grpc}"),
        ("metrics", f"http://{server.metrics}/metrics"),
        ("log", shown(server.log)),
    ]
    return [
        f"Triton {server.version}, {KIND_NAMES[server.kind]}: {why}",
        *([STAND_IN] if server.stand_in else []),
        *grid.lines(models, indent=2),
        *grid.lines(addresses),
        *curl.values(),
    ]


def fields(server: Server, why: str, curl: Mapping[str, str]) -> dict[str, object]:
    """Return the fields of the JSON line about a server that programs read once all models are ready."""
    return {
        "event": "serve",
        "state": "ready",
        "server": {"kind": server.kind, "version": server.version, "why": why, "stand_in": server.stand_in},
        "http": f"http://{server.http}",
        "grpc": f"grpc://{server.grpc}",
        "metrics": f"http://{server.metrics}/metrics",
        "models": {name: state.state for name, state in sorted(server.models.items())},
        "curl": dict(curl),
        "pid": server.pid,
        "log": str(Path(server.log).absolute()),
    }
