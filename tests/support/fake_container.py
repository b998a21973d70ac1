"""A fake `docker` for the commands of docs/gpu.md: no container, the command inside runs on a fake T4 of this machine.

`/work` and `/models` are the folders that `-v` names. `python3 -m venv`, `pip` and `tritonserver` are noted in `calls`
and checked as far as they can be without a network and without a GPU: the extras that pip installs must exist, the
repository that Triton serves must have a config.pbtxt for each model.
"""

import itertools
import json
import os
import re
import shlex
import sys
import tomllib
from pathlib import Path

HOME = Path(os.environ.get("FAKE_CONTAINER", "."))
_IMAGE = re.compile(r"nvcr\.io/nvidia/(tensorrt|tritonserver):\d\d\.\d\d-py3")
_WITH_VALUE = ("--gpus", "-v", "-w", "-p")


def docker(words):
    """Run `docker run [OPTIONS] IMAGE bash -c TEXT`."""
    assert words.pop(0) == "run"
    options = {"-v": [], "-p": []}
    while words[0].startswith("-"):
        word = words.pop(0)
        if word in _WITH_VALUE:
            options.setdefault(word, []).append(words.pop(0))
        else:
            assert word == "--rm", word
    image, shell, dash, text = words
    assert _IMAGE.fullmatch(image), image
    assert (shell, dash, options["--gpus"]) == ("bash", "-c", ["all"])
    for outside, inside in (volume.rsplit(":", 1) for volume in options["-v"]):
        assert Path(outside).is_dir(), f"docker would make an empty folder: {outside}"
        text = re.sub(rf"(?<![\w.]){inside}(?=[/ ]|$)", outside, text)
    text = text.replace("/tmp/venv", str(HOME / "venv"))
    note("docker", image, text)
    environment = os.environ | {"PATH": f"{HOME / 'inside'}:{os.environ['PATH']}"}
    os.execve("/bin/bash", ["bash", "-c", text], environment)


def python3(words):
    """Make an environment whose `recipe` runs on the fake T4."""
    assert words[:3] == ["-m", "venv", "--system-site-packages"], words
    place = Path(words[3]) / "bin"
    place.mkdir(parents=True)
    _program(place / "pip", "pip")
    (place / "recipe").write_text(f'#!/bin/sh\nexec {shlex.quote(os.environ["FAKE_T4"])} -m engine "$@"\n')
    (place / "recipe").chmod(0o755)


def pip(words):
    """Check what `pip install` would be given."""
    assert words[:2] == ["install", "-q"], words
    note("pip", *words)
    for option, value in itertools.pairwise(words):
        if option == "-e":
            extras_exist(value)
        if option == "-r":
            assert Path(value).read_text().strip()


def extras_exist(requirement):
    """Check that this project has the extras of a requirement such as `.[cpu,demo]`; return them."""
    root = Path(__file__).parents[2]
    has = tomllib.loads((root / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    extras = requirement.partition("[")[2].rstrip("]").split(",")
    assert extras
    assert set(extras) <= set(has), requirement
    return extras


def tritonserver(words):
    """Look at the repository as a server would at its start."""
    [repository] = [Path(word.partition("=")[2]) for word in words if word.startswith("--model-repository=")]
    models = sorted(path for path in repository.iterdir() if path.is_dir())
    assert models
    assert all((model / "config.pbtxt").is_file() for model in models)
    note("tritonserver", *(model.name for model in models))


def note(*words):
    with (HOME / "calls").open("a") as calls:
        calls.write(json.dumps(words) + "\n")


def calls(home):
    """Return what was noted, in order."""
    return [json.loads(line) for line in (home / "calls").read_text().splitlines()]


def install(home):
    """Put the fake docker into a folder, and the insides of containers beside it; return the folder for the PATH."""
    for folder in ("outside", "inside"):
        (home / folder).mkdir(parents=True)
    _program(home / "outside" / "docker", "docker")
    for name in ("python3", "pip", "tritonserver"):
        _program(home / "inside" / name, name)
    return home / "outside"


def _program(path, name):
    path.write_text(
        f"#!{sys.executable}\nimport sys\nsys.path.insert(0, {str(Path(__file__).parent)!r})\n"
        f"import fake_container\nfake_container.{name}(sys.argv[1:])\n"
    )
    path.chmod(0o755)
