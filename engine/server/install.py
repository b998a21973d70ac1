"""Install Triton by pip: exact versions, in a virtual environment that nothing else uses."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path

from engine.errors import StepError
from engine.server import packaged
from engine.server.installation import Lacking
from engine.store import file_lock

NUMPY = "numpy==1.26.4"
"""Version 1 of numpy, because the python backend of the pip-installed Triton fails on every request with numpy 2."""
_LIKE_HERE = dict(pin.split("==") for pin in ("onnxruntime==1.31.1", "tokenizers==0.23.3", "pillow==13.0.0"))
"""Packages that python models need, and the version that Triton gets where this Python environment lacks the package.

Where this Python environment has one of the packages, Triton gets the version that is installed here, because the
requirements.txt of a built package names that version.
"""
_ONLY_LIKE_HERE = ("openvino",)
"""Packages that Triton gets only where this Python environment has them."""
_SECONDS = 1800
"""How many seconds one command of the installation may take: half an hour."""


@dataclass(frozen=True)
class Installed:
    """A finished installation: the virtual environment, its size in bytes, and the seconds that installing took."""

    environment: Path
    size: int
    seconds: float


def install(environment: Path, say: Callable[[str], None] = print) -> Installed:
    """Create or update the virtual environment of Triton; a file lock lets only one process at a time work on it.

    Raises StepError where this machine or this Python cannot run the server, or where an installation fails.
    """
    began = time.monotonic()
    try:
        packaged.refuse_platform()
    except Lacking as reason:
        raise StepError(f"no Triton server can be installed by pip: {reason}", hint=reason.hint) from None
    environment.mkdir(parents=True, exist_ok=True)
    ready = environment / packaged.READY
    with file_lock.hold(environment / "lock"):
        python = environment / "bin" / "python"
        if not python.exists():
            say(f"making {environment}")
            _run([sys.executable, "-m", "venv", "--without-pip", str(environment)])
        for words in (["--no-deps", packaged.SERVER], pins()):
            say(f"pip install {' '.join(words)}")
            _run([sys.executable, "-m", "pip", "--python", str(python), "install", "--quiet", *words])
        ready.write_text(packaged.SERVER, "utf-8")
    size = sum(path.lstat().st_size for path in environment.rglob("*") if not path.is_dir())
    return Installed(environment, size, time.monotonic() - began)


def pins() -> list[str]:
    """Return the packages to install beside the server, as pip takes them: `numpy==1.26.4`."""
    versions = {name: _version_here(name) or usual for name, usual in _LIKE_HERE.items()}
    versions |= {name: version for name in _ONLY_LIKE_HERE if (version := _version_here(name)) is not None}
    return [NUMPY, *(f"{name}=={version}" for name, version in versions.items())]


def _version_here(name: str) -> str | None:
    """Return the version of the package `name` in this Python environment; None where the package is not installed."""
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return None


def _run(command: Sequence[str]) -> None:
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=_SECONDS, check=False)  # noqa: S603 - pip
    except subprocess.TimeoutExpired:
        raise StepError(f"`{' '.join(command[1:])}` did not end within {_SECONDS} s", hint="run it again") from None
    if done.returncode:
        lines = (done.stderr.strip() or done.stdout.strip() or "no output").splitlines()
        hint = "python -m ensurepip, or install pip for this Python" if "No module named pip" in lines[-1] else ""
        raise StepError(f"`{' '.join(command[1:])}` failed", lines[-3:], hint or "run the same command again")
