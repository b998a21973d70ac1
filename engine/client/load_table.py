"""Load table: the figures of a load test, a row a point, for people."""

from __future__ import annotations

from typing import Any

_LATENCIES = ("mean", "p50", "p90", "p95", "p99")
_NOTHING = "-"
FULL = 0.9
"""The share of a CPU from which a process of the client is at its limit."""


def head(*, rate: bool, tokens: bool) -> str:
    """Return the names of the columns: latencies, and the server's queue and computing, are ms of a request."""
    names = [f"{'rate/s' if rate else 'clients':>8}{'requests/s':>12}"]
    names += [f"{'tokens/s':>10}"] if tokens else []
    names += [f"{name:>10}" for name in (*_LATENCIES, "queue", "compute")]
    return "".join([*names, f"{'errors':>8}"])


def row(figures: dict[str, Any], *, entry: str) -> str:
    """Return a point's row."""
    load = figures.get("concurrency") or f"{figures['rate']:g}"
    cells = [f"{load:>8}{figures['throughput']:>12.1f}"]
    if "tokens_per_second" in figures:
        cells.append(f"{figures['tokens_per_second']:>10.1f}")
    cells += [_number(figures["latency"].get(f"{name}_ms")) for name in _LATENCIES]
    cells += [_number(value) for value in _served(figures["server"], entry)]
    return "".join([*cells, f"{figures['errors']['count']:>8}"])


def notes(figures: dict[str, Any]) -> list[str]:
    """Return what else there is to say of a point: errors in the server's words, and whether the client kept up."""
    said = [f"{count} x {message}" for message, count in figures["errors"]["messages"].items()]
    if not figures["latency"] and not said:
        said.append("no request began and was answered: use a longer --duration")
    if figures["client"].get("saturated"):
        said.append(_limit(figures["client"]))
    return said


def _limit(client: dict[str, Any]) -> str:
    if client["busy"] >= FULL:
        return f"the client used {client['busy']:.0%} of a CPU and adds to the latencies: use more --processes"
    late = f"{client['late_p95_ms']:.1f} ms"
    return f"the client was woken {late} late and adds to the latencies: the machine is busy, measure from another"


def _served(server: dict[str, Any], entry: str) -> tuple[float | None, float | None]:
    """Return the queue and the computing of a request, of an ensemble those of its models together."""
    own = server.get(entry)
    if not own or not own["requests"]:
        return None, None
    parts = [model for name, model in server.items() if name != entry] or [own]
    queue = sum(part["queue_ms"] for part in parts)
    return queue, sum(part[f"compute_{which}_ms"] for part in parts for which in ("input", "infer", "output"))


def _number(value: float | None) -> str:
    return f"{_NOTHING:>10}" if value is None else f"{value:>10.3f}"
