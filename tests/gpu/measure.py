"""Build MiniLM in every way that runs here and print what was measured, as Markdown for docs/measured.md.

    python tests/gpu/measure.py >> docs/measured.md

What is left out, and why, goes to stderr and below the table.
"""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

_TESTS = Path(__file__).parent.parent
sys.path[:0] = [str(_TESTS.parent), str(_TESTS / "support")]

import gpu_ways as ways  # noqa: E402 - this is a script: nobody has set the path for it

from engine.machine import (  # noqa: E402
    cuda,
    local_gpus,
    tools,
)

_HEADER = ("way", "shape", "mean ms", "p50", "p95", "p99", "against pytorch fp32", "pytorch fp16", "worst cosine", "MB")
_TOOLS = ("onnxruntime-gpu", "tensorrt", "tensorrt_rtx", "torch", "transformers")


def main() -> int:
    """Measure, print, and return 0; 1 where there is nothing to measure on."""
    if (reason := ways.no_gpu()) is not None:
        print(f"nothing was measured: {reason}", file=sys.stderr)
        return 1
    shown: list[Mapping[str, Any]] = []
    left: list[str] = []
    with tempfile.TemporaryDirectory() as folder:
        for way in ways.WAYS:
            if (why := way.missing()) is not None:
                left.append(f"{way.name}: {why}")
                continue
            print(f"building {way.name}", file=sys.stderr)
            done, variant = ways.build(Path(folder), way)
            if variant.get("bench"):
                shown.append(variant)
            else:
                left.append(f"{way.name}: {_last(done.stderr)}")
    print("\n".join(left), file=sys.stderr)
    print(section(shown, left, _heading(), _versions()))
    return 0


def section(shown: Sequence[Mapping[str, Any]], left: Sequence[str], heading: str, versions: str) -> str:
    """Return a part of docs/measured.md: where, with what, the table, what was left out."""
    lines = [f"\n## {heading}\n", versions, "", _row(_HEADER), _row("-" * 3 for _ in _HEADER)]
    lines += [_row(cells) for variant in shown for cells in _cells(variant)]
    clocks = [f"{variant['recipe']}: {_clocks(variant)}" for variant in shown]
    lines += ["", "Clocks while it was measured: " + "; ".join(clocks) + "."] if clocks else []
    lines += ["", "Left out: " + "; ".join(left) + "."] if left else []
    return "\n".join(lines)


def _cells(variant: Mapping[str, Any]) -> list[list[str]]:
    cosine = variant["validation"].get("cosine")
    rows = []
    for row in variant["bench"]:
        if not row["ours"]:
            continue
        shape = " x ".join(str(extent) for extent in row["shape"].values())
        times = [f"{row[name]:.3f}" for name in ("mean_ms", "p50_ms", "p95_ms", "p99_ms")]
        ratios = [f"{row['ratio_to'][name]:.2f} x" if name in row["ratio_to"] else "" for name in _RIVALS]
        size = f"{variant['size'] / 1e6:.1f}" if variant["size"] else ""
        rows.append([variant["recipe"], shape, *times, *ratios, f"{cosine['worst']:.6f}" if cosine else "", size])
    return rows


_RIVALS = ("pytorch-fp32", "pytorch-fp16")


def _clocks(variant: Mapping[str, Any]) -> str:
    report = next((step["report"] for step in variant["steps"] if step["job"] == "bench" and step["artifact"]), {})
    gpu = report.get("gpu", {})
    if "sm_mhz" not in gpu:
        return "not known"
    least, greatest = gpu["sm_mhz"]
    return f"{least} MHz throughout" if gpu.get("steady") else f"{least} to {greatest} MHz"


def _heading() -> str:
    return f"{cuda.devices()[0].name}, driver {local_gpus.driver()}, CUDA {cuda.runtime_version()}"


def _versions() -> str:
    versions = {tool: tools.version_of(tool) for tool in _TOOLS}
    return ", ".join(f"{tool} {version}" for tool, version in versions.items() if version != tools.MISSING) + "."


def _row(cells: Any) -> str:
    return f"| {' | '.join(cells)} |"


def _last(text: str) -> str:
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    failed = [number for number, line in enumerate(lines) if line.startswith("failed ")]
    return lines[failed[0] + 1] if failed and failed[0] + 1 < len(lines) else "; ".join(lines[-1:])


if __name__ == "__main__":
    sys.exit(main())
