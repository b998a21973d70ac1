"""What pip downloads for an extra: `python benchmarks/install_size.py cpu -c constraints.txt`.

pip resolves the extra as in an empty environment and downloads only metadata; the sizes are those of the wheels.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import urllib.parse
import urllib.request
from pathlib import Path

ROOT = Path(__file__).parent.parent


def size(url: str) -> int:
    """Return the size of a wheel in bytes, without a download."""
    parts = urllib.parse.urlsplit(url)
    if parts.scheme == "file":
        return Path(urllib.parse.unquote(parts.path)).stat().st_size
    with urllib.request.urlopen(urllib.request.Request(url, method="HEAD"), timeout=60) as answer:
        return int(answer.headers["Content-Length"])


def main(extra: str, *options: str) -> None:
    """Print the number of packages, their size, and the largest ones."""
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder) / "report.json"
        command = [sys.executable, "-m", "pip", "install", "--dry-run", "--ignore-installed", "-q"]
        subprocess.run([*command, "--report", report, *options, f"{ROOT}[{extra}]"], check=True)
        packages = json.loads(report.read_text("utf-8"))["install"]
    others = [each for each in packages if not each["is_direct"]]
    sizes = sorted(((size(each["download_info"]["url"]), each["metadata"]["name"]) for each in others), reverse=True)
    print(f"{extra}: {len(sizes)} packages, {sum(number for number, _ in sizes) / 1e6:.1f} MB")
    for number, name in sizes[:5]:
        print(f"  {number / 1e6:8.1f} MB  {name}")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("extra", help="one or several: cpu,demo")
    arguments, options = parser.parse_known_args()
    main(arguments.extra, *options)
