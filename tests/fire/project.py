"""A project to build under fire: steps of another package around a tiny model, and a package at the end."""

from __future__ import annotations

import json
import os
import shutil
from collections import Counter
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path

import graphs
import onnx
from onnx import helper

import engine

STEPS = ("read", "seed", "left", "right", "join", "many", "big", "stamp")
_HERE = Path(__file__).parent
_HOME = Path(engine.__file__).parent.parent
_RECIPE = """\
name: fire
model: {{source: model.onnx}}
matrix: {{steps.seed.text: [{texts}]}}
steps:
  read: {{source: {{uri: "file:{source}"}}}}
  seed: {{text: ""}}
  left: {{}}
  right: {{}}
  join: {{}}
  many: {{}}
  big: {{megabytes: {megabytes}}}
  stamp: {{}}
"""

Tree = dict[str, str]
"""Relative path -> what the file holds, as a digest."""


class Project:
    """A folder with a recipe, what it reads, and the package that brings its steps."""

    def __init__(self, folder: Path, *, variants: int = 2, megabytes: int = 5) -> None:
        self.folder = folder
        folder.mkdir()
        self.site = folder / "site"
        self.source = folder / "input.txt"
        shutil.copytree(_HERE / "package" / "fire_steps", self.site / "fire_steps")
        shutil.copy(_HERE / "fire_hook.py", self.site)
        info = self.site / "fire_steps-1.0.dist-info"
        info.mkdir()
        (info / "METADATA").write_text("Metadata-Version: 2.1\nName: fire-steps\nVersion: 1.0\n")
        points = [f"{name} = fire_steps.steps:{name.title()}" for name in STEPS]
        (info / "entry_points.txt").write_text("\n".join(["[recipe.steps]", *points, ""]))
        (folder / "pyproject.toml").write_text("")
        self.source.write_text("from outside\n")
        onnx.save(_model(), folder / "model.onnx")
        texts = ", ".join(f"text{number}" for number in range(variants))
        (folder / "r.yaml").write_text(_RECIPE.format(texts=texts, source=self.source, megabytes=megabytes))

    @property
    def environment(self) -> dict[str, str]:
        """The environment of builders, without a place to tell of the work."""
        kept = {k: v for k, v in os.environ.items() if not k.startswith(("RECIPE_", "PYTHON", "XDG_"))}
        kept |= {"CI": "true", "PYTHONPATH": f"{self.site}{os.pathsep}{_HOME}"}
        return kept | {"RECIPE_TRUST_CACHE": "1"}  # tests copy stores


def _model() -> onnx.ModelProto:
    node = helper.make_node("MatMul", ["x", "w"], ["y"])
    ends = [("x", graphs.FLOAT, [1, 8])], [("y", graphs.FLOAT, [1, 4])]
    return graphs.graph([node], *ends, [graphs.weight("w", 8, 4)])


@dataclass(frozen=True)
class Ground:
    """What builders share: a store, the folder of packages, and the log of the work that steps did."""

    folder: Path

    @property
    def cache(self) -> Path:
        return self.folder / "cache"

    @property
    def out(self) -> Path:
        return self.folder / "build"

    @property
    def announcements(self) -> Path:
        return self.folder / "told"

    @property
    def words(self) -> tuple[str, ...]:
        """The command line of a build on this ground."""
        return ("build", "r.yaml", "--json", "--cache", str(self.cache), "-o", str(self.out))

    def copy(self, folder: Path) -> Ground:
        """Copy the store and the packages; hard links stay what they are, the log begins anew."""
        ground = Ground(folder)
        ground.announcements.mkdir(parents=True)
        for mine, its in ((self.cache, ground.cache), (self.out, ground.out)):
            if mine.exists():
                copy_linked(mine, its)
        return ground

    def work(self, kind: str = "begin", *, since: int = 0) -> Counter[str]:
        """Return how often which piece of work began, or ended, behind this place in the log."""
        rows = [line.split(" ") for line in self.lines()[since:]]
        return Counter(row[1] for row in rows if row[0] == kind)

    def lines(self) -> list[str]:
        log = self.announcements / "log"
        return log.read_text().splitlines() if log.exists() else []

    def records(self) -> dict[str, dict]:
        """Return all records by their file's name, as they lie there."""
        return {path.stem: json.loads(path.read_bytes()) for path in (self.cache / "records").glob("*.json")}

    def committed(self) -> set[str]:
        """Return the identities of the work behind the records of told steps."""
        reports = [record["report"] for record in self.records().values()]
        return {report["identity"] for report in reports if "identity" in report}

    def leftovers(self) -> list[str]:
        """Return what lies in staging/, or under build/ beside packages and their marks."""
        staging = self.cache / "staging"
        packages = (
            [path.name for path in self.out.iterdir() if not path.name.startswith(".")] if self.out.exists() else []
        )
        expected = {*packages, *(f".{name}.artifact" for name in packages)}
        strangers = [path for path in self.out.iterdir() if path.name not in expected] if self.out.exists() else []
        return [str(path) for path in [*staging.iterdir(), *strangers]] if staging.exists() else []


def copy_linked(source: Path, target: Path) -> None:
    """Copy a folder; names of one file become names of one file."""
    names: dict[int, Path] = {}
    target.mkdir(parents=True)
    for folder, folders, files in os.walk(source):
        place = target / Path(folder).relative_to(source)
        for name in folders:
            (place / name).mkdir()
        for name in files:
            mine = Path(folder, name)
            first = names.setdefault(mine.stat().st_ino, place / name)
            if first == place / name:
                shutil.copy2(mine, first)
            else:
                os.link(first, place / name)


def tree(folder: Path) -> Tree:
    """Return what all files below a folder hold."""
    files = sorted(path for path in folder.rglob("*") if path.is_file())
    return {str(path.relative_to(folder)): sha256(path.read_bytes()).hexdigest() for path in files}


@dataclass(frozen=True)
class Delivery:
    """What a build hands over: each job's artifact and each package, byte by byte."""

    artifacts: dict[tuple[str, str], Tree]
    packages: dict[str, Tree]


def delivery(events: list[dict], folder: Path) -> Delivery:
    """Read what a build says that it has made or found; `folder` is where it ran."""
    seen: dict[str, Tree] = {}
    artifacts = {}
    for event in events:
        if event["event"] == "end" and "path" in event:
            path = event["path"]
            seen.setdefault(path, tree(Path(path)))
            artifacts[event["recipe"], event["job"]] = seen[path]
    packages = {name: tree(folder / place) for name, place in events[-1].get("packages", {}).items()}
    return Delivery(artifacts, packages)
