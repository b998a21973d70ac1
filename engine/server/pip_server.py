"""The pip-installed Triton: a real server for CPUs in its own environment, with stand-ins for two backends."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import sysconfig
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path

from engine.errors import StepError
from engine.machine import cuda
from engine.runtimes.backends import Backend
from engine.server.installation import Installation, Lacking, Launch, ServerSetup, options
from engine.server.repository_needs import Needs
from engine.store import file_lock

SERVER = "nvidia-pytriton==0.7.0"
VERSION = "2.51.0"
"""The version of the Triton that the package `SERVER` installs."""
PYTHON = f"{sys.version_info.major}.{sys.version_info.minor}"
INSTALL = "recipe serve --install"
_LAST_PYTHON = (3, 12)
data = ("stand_in.py", "stand_in_openvino.py")
_STAND_INS = {Backend.ONNXRUNTIME.backend: data[0], Backend.OPENVINO.backend: data[1]}
"""The backends that stand-ins take the place of, each with its file; a backend's Python package has the same name."""
_VARIABLE, _CACHE = "RECIPE_TRITON_VENV", "XDG_CACHE_HOME"
VARIABLES = (_VARIABLE, _CACHE, "HOME")
"""Environment variables that decide in which folder Triton's virtual environment is."""
READY = "ready"
"""The file in the virtual environment that is written when everything is installed."""
NUMPY = "numpy==1.26.4"
"""Version 1 of numpy, because the python backend of the pip-installed Triton fails on every request with numpy 2."""
_LIKE_HERE = dict(pin.split("==") for pin in ("onnxruntime==1.31.1", "tokenizers==0.23.3", "pillow==13.0.0"))
"""Packages of python models -> the version where this Python has none: packages pin what is installed here."""
_ONLY_LIKE_HERE = ("openvino",)
"""Packages that Triton gets only where this Python environment has them."""
_SECONDS = 1800
"""How many seconds one command of the installation may take: half an hour."""


@dataclass(frozen=True)
class Packaged(Installation):
    """The pip-installed server in the virtual environment `environment`."""

    environment: Path = Path()
    stand_in = True

    def launch(self, setup: ServerSetup) -> Launch:
        """Write the backends into the server's folder; return the command. Of this process's variables it gets HOME."""
        site = packages(self.environment)
        home = site / "pytriton" / "tritonserver"
        backends = _backends(home, setup.folder / "backends")
        libraries = [str(site / "nvidia_pytriton.libs"), *_libpython_folder()]
        command = [
            str(home / "bin" / "tritonserver"),
            *options(setup, str(setup.repository), setup.ports, self.version),
            f"--backend-directory={backends}",
            f"--cache-directory={home / 'caches'}",
        ]
        environment = {
            "HOME": os.environ.get("HOME", "/"),
            "PATH": f"{self.environment / 'bin'}:/usr/bin:/bin",
            "LANG": "C.UTF-8",
            "LD_LIBRARY_PATH": ":".join(libraries),
            "CUDA_VISIBLE_DEVICES": "",
            "PYTHONDONTWRITEBYTECODE": "1",
        }
        return Launch(command, environment)


def find(needs: Needs) -> Packaged:
    """Return the pip-installed server. Raises Lacking where it is missing, or cannot serve the models of `needs`."""
    refuse_platform()
    if needs.gpu:
        raise Lacking(f"it is for CPUs, and {', '.join(needs.gpu)} runs on a GPU")
    missing_backends = sorted(needs.backends - {"python", *_STAND_INS})
    if missing_backends:
        raise Lacking(f"it has no backend for {', '.join(missing_backends)}")
    environment = place_of_environment()
    if not (environment / READY).is_file():
        raise Lacking(f"not installed in {environment}", INSTALL)
    missing = lacks(environment, needs)
    if missing:
        raise Lacking(f"the environment {environment} lacks {', '.join(missing)}", INSTALL)
    return Packaged("pip", VERSION, f"{SERVER} in {environment}", environment=environment)


def refuse_platform() -> None:
    """Raise Lacking where the pip-installed server cannot run: on this operating system or with this Python."""
    if sys.platform != "linux" or os.uname().machine != "x86_64":
        raise Lacking(f"it is made for Linux on x86-64, and this is {sys.platform} on {os.uname().machine}")
    if sys.version_info[:2] > _LAST_PYTHON:
        raise Lacking(f"it needs numpy 1, which exists only up to Python {'.'.join(map(str, _LAST_PYTHON))}")
    if not _has_libpython():
        name = f"libpython{PYTHON}.so.1.0"
        raise Lacking(f"{name}, which its python backend loads, is missing", f"apt-get install libpython{PYTHON}")


def place_of_environment() -> Path:
    """Return the folder of the virtual environment: RECIPE_TRITON_VENV, else a folder in the user's cache."""
    folder = os.environ.get(_VARIABLE)
    cache = Path(os.environ.get(_CACHE) or Path.home() / ".cache")
    return Path(folder).absolute() if folder else cache / "recipe" / f"triton-{PYTHON}"


def packages(environment: Path) -> Path:
    """Return the folder of installed packages. Raises Lacking where the environment has another version of Python."""
    site = environment / "lib" / f"python{PYTHON}" / "site-packages"
    if not site.is_dir():
        raise Lacking(f"{environment} is no environment of Python {PYTHON}", INSTALL)
    return site


def lacks(environment: Path, needs: Needs) -> list[str]:
    """Return the Python packages of models and stand-ins that the environment lacks or has in another version."""
    site = packages(environment)
    stub = site / "pytriton" / "tritonserver" / "python_backend_stubs" / PYTHON
    installed = {dist.name.lower().replace("_", "-"): dist.version for dist in metadata.distributions(path=[str(site)])}
    missing = [] if stub.is_dir() else [f"a python backend for Python {PYTHON}"]
    missing += [f"{name} for its backend" for name in sorted(needs.backends & _STAND_INS.keys() - installed.keys())]
    for line, model in needs.requirements.items():
        name, _, version = (part.strip() for part in line.partition("=="))
        here = installed.get(name.lower().replace("_", "-"))
        if here is None or (version and here != version):
            missing.append(f"{line} for {model}" + (f" (it has {here})" if here else ""))
    return missing


def _backends(home: Path, folder: Path) -> Path:
    """Write the folders of Triton's python backend, and of the stand-ins for other backends."""
    python = folder / "python"
    python.mkdir(parents=True)
    for name in ("libtriton_python.so", "triton_python_backend_utils.py"):
        shutil.copy(home / "backends" / "python" / name, python / name)
    stub = python / "triton_python_backend_stub"
    shutil.copy(home / "python_backend_stubs" / PYTHON / stub.name, stub)
    stub.chmod(0o755)
    for backend, file in _STAND_INS.items():
        (folder / backend).mkdir()
        shutil.copy(Path(__file__).with_name(file), folder / backend / "model.py")
    return folder


def _has_libpython() -> bool:
    return bool(_libpython_folder()) or cuda.library(f"libpython{PYTHON}.so.1.0") is not None


def _libpython_folder() -> list[str]:
    """Return a list with the folder of the shared library libpython; an empty list where LIBDIR holds no libpython."""
    folder = str(sysconfig.get_config_var("LIBDIR") or "")
    return [folder] if (Path(folder) / f"libpython{PYTHON}.so.1.0").is_file() else []


@dataclass(frozen=True)
class Installed:
    """A finished installation: the virtual environment, its size in bytes, and the seconds that installing took."""

    environment: Path
    size: int
    seconds: float


def install(environment: Path, say: Callable[[str], None] = print) -> Installed:
    """Create or update Triton's environment, one process at a time. Raises StepError where that fails."""
    began = time.monotonic()
    try:
        refuse_platform()
    except Lacking as reason:
        raise StepError(f"no Triton server can be installed by pip: {reason}", hint=reason.hint) from None
    environment.mkdir(parents=True, exist_ok=True)
    ready = environment / READY
    with file_lock.hold(environment / "lock"):
        python = environment / "bin" / "python"
        if not python.exists():
            say(f"making {environment}")
            _run([sys.executable, "-m", "venv", "--without-pip", str(environment)])
        for words in (["--no-deps", SERVER], pins()):
            say(f"pip install {' '.join(words)}")
            _run([sys.executable, "-m", "pip", "--python", str(python), "install", "--quiet", *words])
        ready.write_text(SERVER, "utf-8")
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
