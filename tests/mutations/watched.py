"""What a snapshot watches, kind by kind: how the rows of a kind are taken out, and a change that only they show."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from mutations.actions import append, copy, edit, flip, link, move, remove, rewrite, write
from mutations.actions_around import distribution
from mutations.mutation import Action
from mutations.workplace import Workplace

from engine import snapshot
from engine.system import watched as watched_files

_ASK = """
import sys
from engine import cli, snapshot
cli._begin()
cli._leave_own_folder()
answered = snapshot.answer(sys.argv[1:])
if isinstance(answered, int):
    sys.exit(0)
sys.stderr.write("no snapshot of these files" if answered is None else f"changed: {answered.names}")
sys.exit(9)
"""
"""A program that asks the snapshot of a command line alone, as `recipe build` does first."""


@dataclass(frozen=True)
class Kind:
    """One kind of watched rows, in the project of a name.

    `prepare` changes a copy of the project before it is built, `change` changes the copy when a snapshot answers.
    `is_of_kind` chooses rows by the name of a file, which is relative where the file lies in the project; `part` is the
    part of the snapshot that has the rows.
    """

    project: str
    change: Action
    is_of_kind: Callable[[str], bool]
    part: str = "watched"
    prepare: tuple[Action, ...] = ()


def unanswered(place: Workplace) -> str:
    """Return why the snapshot alone does not answer a build of the project; empty where it does."""
    words = [sys.executable, "-c", _ASK, place.recipe, *place.options, *place.only_build, "--json"]
    done = subprocess.run(words, cwd=place.folder, env=place.environment, capture_output=True, check=False)
    assert done.returncode in {0, 9}, done.stderr
    return done.stderr.decode() if done.returncode else ""


def take_out(place: Workplace, kind: Kind) -> int:
    """Write the snapshots of a project without the rows of a kind; return how many rows were taken out."""
    root = f"{os.path.realpath(place.folder)}/"
    count = 0

    def stays(name: str) -> bool:
        nonlocal count
        is_out = kind.is_of_kind(name.removeprefix(root))
        count += is_out
        return not is_out

    for path in [*place.path("cache").glob("snapshots/*"), *place.path("stored").glob("snapshots/*")]:
        content = dict(snapshot.read(str(path)))
        content[kind.part] = _WITHOUT[kind.part](content[kind.part], stays)
        path.write_bytes(snapshot.sealed(str(path), content))
    return count


def _list(names: list[str], stays: Callable[[str], bool]) -> list[str]:
    return [name for name in names if stays(name)]


def _mapping(rows: Mapping[str, Any], stays: Callable[[str], bool]) -> dict[str, Any]:
    return {name: row for name, row in rows.items() if stays(name)}


def _packed(block: tuple[list[str], bytes], stays: Callable[[str], bool]) -> tuple[list[str], bytes]:
    return watched_files.packed(_mapping(watched_files.unpacked(*block), stays))


_WITHOUT = {"watched": _packed, "way": _mapping, "roots": _mapping, "absent": _list, "notes": _list}


def named(*names: str) -> Callable[[str], bool]:
    return lambda row: row.endswith(names)


def below(folder: str) -> Callable[[str], bool]:
    return lambda row: row.startswith(f"{folder}/")


def anything(_row: str) -> bool:
    return True


def _lock(place: Workplace) -> None:
    place.lock()
    place.options.append("--locked")


def _programs(place: Workplace) -> None:
    place.path("programs").mkdir()
    place.environment["PATH"] = f"{place.path('programs')}{os.pathsep}{os.environ['PATH']}"


def _no_gpu(place: Workplace) -> None:
    place.path("programs/nvidia-smi").write_text("#!/bin/sh\nexit 9\n")
    place.path("programs/nvidia-smi").chmod(0o755)


def _in_recipes(place: Workplace) -> None:
    """Put the recipe below the root of the project, and the store elsewhere."""
    move("r.yaml", "recipes/r.yaml")(place)
    edit("recipes/r.yaml", "net/net.onnx", "../net/net.onnx")(place)
    place.path("cache").rename(place.path("stored"))
    place.recipe = "recipes/r.yaml"
    place.options += ["--cache", "stored"]


def _more_records(place: Workplace) -> None:
    record = min(place.path("cache/records").glob("*.json"))
    record.with_name("0" * 32 + ".json").write_bytes(record.read_bytes())


S, B = "stamped", "bert"
_PACKAGE, _INFO = "site/stamp_package", "site/stamp_package-1.0.dist-info"
KINDS: Mapping[str, Kind] = {
    "the recipe": Kind(S, edit("r.yaml", "text: hello", "text: hallo"), named("r.yaml")),
    "a recipe that it extends": Kind(S, edit("base.yaml", "text: hello", "text: hallo"), named("base.yaml"),
            prepare=(move("r.yaml", "base.yaml"), write("r.yaml", "extends: base.yaml\n"))),
    "the lock": Kind(S, rewrite("r.lock", lambda text: text.replace("stamp", "stomp")), named("r.lock"),
            prepare=(_lock,)),
    "a file of a source": Kind(S, flip("net/net.onnx"), named("net.onnx")),
    "the folder of a source": Kind(B, write("model/added_tokens.json", "{}"), named("model")),
    "the samples": Kind(B, append("samples.jsonl", '{"text": "more"}\n'), named("samples.jsonl")),
    "the code of another package's step": Kind(S, append(f"{_PACKAGE}/step.py", "\nEDITED = 1\n"), named("/step.py")),
    "the code that this step imports": Kind(S, append(f"{_PACKAGE}/words.py", "\nEDITED = 1\n"), named("/words.py")),
    "the entry points of a package": Kind(S, append(f"{_INFO}/entry_points.txt", "\n"), named("entry_points.txt")),
    "the metadata of a tool": Kind(S, edit("site/onnx-9.9.dist-info/METADATA", "9.9", "9.8"),
            below("site/onnx-9.9.dist-info"),
            prepare=(lambda place: distribution(place.path("site"), "onnx", "9.9"),)),
    "a folder of the import path": Kind(S, write("site/other-1.0.dist-info/METADATA", "Name: other\n"),
            named("site")),
    "the program's own code": Kind("source", append("src/engine/steps/fuse.py", "\nEDITED = 1\n"), named("fuse.py")),
    "the folder of the program's steps": Kind("source", write("src/engine/steps/x.txt", ""), named("engine/steps")),
    "a record": Kind(S, remove("cache/records/*.json"), below("cache/records")),
    "a file of an artifact": Kind(S, flip("cache/artifacts/*/model.onnx"), below("cache/artifacts")),
    "a file of a package": Kind(S, flip("build/stamped/*/config.pbtxt"), named("config.pbtxt")),
    "a folder of a package": Kind(S, write("build/stamped/more", ""), named("build/stamped")),
    "the marker of a package": Kind(S, append("build/.stamped.artifact", "\n"), named(".stamped.artifact")),
    "the records, where a job waits": Kind("gpu", _more_records, named("cache/records")),
    "a program that is absent": Kind("gpu", _no_gpu, named("programs/nvidia-smi"), "absent", (_programs,)),
    "the head": Kind(S, remove("cache/heads/*.json"), anything, "notes"),
    "a link inside a link's target": Kind(B, link("hop", "v2"), named("hop"), "way",
            (move("model", "v1"), copy("v1", "v2"), edit("v2/config.json", '"gelu"', '"relu"'), link("hop", "v1"),
             link("model", "hop"))),
    "the root of the project": Kind(S, lambda place: place.path("recipes/.git").mkdir(), anything, "roots",
            (_in_recipes,)),
}  # fmt: skip
"""Every kind of rows in a snapshot that a change of a file can show."""
