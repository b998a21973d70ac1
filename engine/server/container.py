"""Triton in a container, by docker or podman: the image whose TensorRT fits, with what the python models need."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from engine import digest
from engine.server import versions
from engine.server.found import Found, Lacking, Launch, Place, options
from engine.server.layout import targets
from engine.server.needs import Needs
from engine.server.ports import USUAL, Ports

TOOLS = ("docker", "podman")
_GPUS: Mapping[str, Sequence[str]] = {"docker": ("--gpus", "all"), "podman": ("--device", "nvidia.com/gpu=all")}
_DERIVED = "recipe-triton"
_SHARED_MEMORY = "1g"
"""Where the python backend hands tensors around; docker's own default of 64 MB is less than it asks for at once."""
_MODELS = "/models"
_ANSWER_SECONDS, _PULL_SECONDS = 20, 7200


@dataclass(frozen=True)
class InContainer(Found):
    """The server in `image`, run by `tool`."""

    tool: str = ""
    image: str = ""

    def launch(self, place: Place) -> Launch:
        """Run the image: it sees the repository alone, and cannot write it; its ports go to the address asked for."""
        outside, inside = place.ports, Ports(*USUAL, address="0.0.0.0")  # noqa: S104 - inside the container alone
        published = [
            f"--publish={outside.address}:{here}:{there}"
            for here, there in zip((outside.http, outside.grpc, outside.metrics), USUAL, strict=True)
        ]
        name = place.name.replace("_", "-")
        command = [
            self.tool, "run", "--rm", "--init", f"--name={name}", f"--shm-size={_SHARED_MEMORY}", *published,
            f"--volume={place.repository}:{_MODELS}:ro",
            *(f"--volume={folder}:{folder}:ro" for folder in targets(place.repository)),
            *(_GPUS[Path(self.tool).name] if place.needs.gpu else ()),
            self.image, "tritonserver", *options(place, _MODELS, inside),
        ]  # fmt: skip
        return Launch(command, dict(os.environ), afterwards=[[self.tool, "rm", "--force", name]])


def find(needs: Needs, said: str | None, *, pull: bool) -> InContainer:
    """Return a container with all that the models need; what it lacks is put into an image once, and kept.

    `said` is the recipe's own word for the image. Raises Lacking.
    """
    tool = _tool()
    tag = versions.tag_for(needs.engines, said)
    image = versions.address_of(tag)
    recipe = _dockerfile(image, needs)
    wanted = f"{_DERIVED}:{tag}-{digest.of_bytes(recipe.encode())[:12]}" if needs.requirements else image
    here = _has(tool, wanted)
    if not here and pull:
        _fetch(tool, image, wanted, recipe)
    why = f"{Path(tool).name} runs {image}" + ("" if here or pull else ", once it is pulled")
    return InContainer("container", tag, why, tool=tool, image=wanted)


def _tool() -> str:
    """Return the first tool whose daemon answers."""
    silent = []
    for name in TOOLS:
        tool = shutil.which(name)
        if tool is None:
            continue
        done = _run([tool, "info"], seconds=_ANSWER_SECONDS)
        if done.returncode == 0:
            return tool
        silent.append(f"{name} does not answer: {_last(done)}")
    raise Lacking("; ".join(silent) or f"there is neither {' nor '.join(TOOLS)}")


def _dockerfile(image: str, needs: Needs) -> str:
    """Return what makes an image with the packages of the python models. Raises Lacking where two pins differ."""
    pinned: dict[str, str] = {}
    for line, model in needs.requirements.items():
        name = line.partition("==")[0].strip().lower()
        if pinned.setdefault(name, line) != line:
            raise Lacking(
                f"{needs.requirements[pinned[name]]} needs {pinned[name]}, and {model} needs {line}",
                "build both with the same packages, or serve them apart",
            )
    words = " ".join(f"'{line}'" for line in sorted(pinned.values()))
    return f"FROM {image}\nRUN pip install --no-cache-dir {words}\n"


def _has(tool: str, image: str) -> bool:
    return _run([tool, "image", "inspect", image], seconds=_ANSWER_SECONDS).returncode == 0


def _fetch(tool: str, image: str, wanted: str, recipe: str) -> None:
    """Pull the image, and make the one with the packages out of it. What the tool says goes to standard error."""
    print(f"{Path(tool).name} fetches {image}, several gigabytes; `--server pip` needs none", file=sys.stderr)
    if not _has(tool, image):
        done = _run([tool, "pull", image], seconds=_PULL_SECONDS)
        if done.returncode:
            raise Lacking(f"{image} cannot be pulled: {_last(done)}")
    if wanted != image:
        done = _run([tool, "build", "--tag", wanted, "-"], seconds=_PULL_SECONDS, text=recipe)
        if done.returncode:
            raise Lacking(f"an image with the packages of the python models cannot be built: {_last(done)}")


def _run(command: Sequence[str], *, seconds: float, text: str = "") -> subprocess.CompletedProcess[str]:
    try:
        return subprocess.run(  # noqa: S603 - docker or podman, found on the PATH
            command, input=text, capture_output=True, text=True, errors="replace", timeout=seconds, check=False
        )
    except subprocess.TimeoutExpired:
        return subprocess.CompletedProcess(command, 124, "", f"no answer within {seconds:.0f} s")
    except OSError as error:
        return subprocess.CompletedProcess(command, 126, "", str(error))


def _last(done: subprocess.CompletedProcess[str]) -> str:
    return (done.stderr.strip() or done.stdout.strip() or f"exit {done.returncode}").splitlines()[-1]
