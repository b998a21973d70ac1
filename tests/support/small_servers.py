"""What looks like Triton servers and like their repositories, as files only."""

from pathlib import Path

from engine.server import pip_server
from engine.server.installation import ServerSetup
from engine.server.ports import Ports

ONNX = 'name: "a"\nplatform: "onnxruntime_onnx"\nmax_batch_size: 8\n'
GPU = "instance_group { kind: KIND_GPU }\n"


def on_path(folder, *backends):
    """Put a program called tritonserver on the PATH, with backends beside it."""
    home = folder / "opt"
    (home / "bin").mkdir(parents=True)
    program = home / "bin" / "tritonserver"
    program.write_text("#!/bin/sh\n")
    program.chmod(0o755)
    for name in backends:
        (home / "backends" / name).mkdir(parents=True)
    (home / "TRITON_VERSION").write_text("2.51.0\n")
    (folder / "bin" / "tritonserver").symlink_to(program)
    return program


def pip_installed(folder, **versions_of):
    """Lay an environment out as the installed one lies, with these packages in it."""
    site = folder / "environment" / "lib" / f"python{pip_server.PYTHON}" / "site-packages"
    (site / "pytriton" / "tritonserver" / "python_backend_stubs" / pip_server.PYTHON).mkdir(parents=True)
    for name, version in versions_of.items():
        info = site / f"{name}-{version}.dist-info"
        info.mkdir()
        (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n")
    (folder / "environment" / "ready").write_text("")


def model(repository, name, text, **files):
    folder = repository / name / "1"
    folder.mkdir(parents=True)
    (folder.parent / "config.pbtxt").write_text(text.replace('"a"', f'"{name}"'))
    for file, content in files.items():
        (folder.parent / file.replace("_txt", ".txt")).write_text(content)
    return folder


def place(needs, repository=Path("/packages")):
    return ServerSetup(repository, Ports(8000, 8001, 8002), Path("/scratch"), "recipe_ab12", needs)
