"""Say which kinds of models this machine can build, and which tools are missing."""

from __future__ import annotations

import argparse
import os
import platform
import shutil
import sys
from collections.abc import Sequence
from pathlib import Path

from engine.errors import Exit
from engine.recipe.project import cache_of, root_of
from engine.system import own_stores
from engine.text import distribution, redaction

_HERE = "recipe.yaml"
"""A recipe of this folder, whether it is there or not: its project is that of the folder."""

_TOOLS = {
    "onnx": "all models",
    "tokenizers": "text samples",
    "tritonclient": "package",
    "transformers": "Hugging Face models",
    "huggingface_hub": "hf: sources",
}
"""Python packages that any runtime needs, and their purposes; `tools_for` of a runtime has the others."""


def arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments of `recipe doctor`."""
    parser.add_argument("--bundle", type=Path, metavar="FILE", help="write records, logs and facts, redacted, to FILE")
    parser.add_argument("--for", dest="recipes", type=Path, metavar="RECIPE", nargs="+",
                        help="say what this machine lacks to build RECIPE (then the exit code is 3)")  # fmt: skip
    parser.add_argument(
        "--on", metavar="WHERE", help="say what the nodes of a Ray cluster have: ray://HOST:PORT or auto"
    )


def run(arguments: argparse.Namespace) -> Exit:
    """Print facts, tools, runtimes and servers; with `--for`, what recipes lack here. Raises UserError."""
    if arguments.on is not None:
        return _cluster(arguments.on, arguments.recipes or ())
    if arguments.recipes is not None:
        return _lacks(arguments.recipes)
    from engine.builder import facts, registry
    from engine.machine import tools
    from engine.report import grid
    from engine.runtimes.registry import runtimes

    if arguments.bundle is not None:
        from engine.report import bundle

        store = Path(_store())
        if store.is_dir():
            own_stores.enter(str(store))
        count = bundle.write(arguments.bundle, store, dict(facts.describing()))
        print(f"{arguments.bundle}: {count} files; look into it before you send it")
        return Exit.OK
    python = f"{platform.python_version()} on {platform.system()} {platform.machine()}"
    grid.show([("python", python), *facts.describing().items()])
    print()
    grid.show(_settings())
    print()
    of_runtimes = {name: what for each in runtimes().values() for name, what in each.tools_for.items()}
    rows = []
    for tool, purpose in (_TOOLS | of_runtimes).items():
        version = tools.version_of(tool)
        rows.append((tool, "missing" if version == tools.MISSING else version, f"for {purpose}"))
    grid.show(rows)
    for text in tools.newer():
        print(f"note: {text}")
    print()
    _show_commands([tool for tool, version, _ in rows if version == "missing"])
    show_gpu_ways()
    print(f"a Triton server for `recipe serve`: {_triton()}")
    print()
    print(f"unchanged files: {_file_systems()}")
    print()
    print(f"steps: {', '.join(sorted(registry.steps()))}")
    if any(tools.version_of(tool) == tools.MISSING for tool in ("torch", "transformers", "onnxruntime")):
        cpu, onnx = distribution.install("cpu"), distribution.install("onnx")
        print(f"hint: `{cpu}` has all that a CPU build needs, `{onnx}` all for ONNX files")
    return Exit.OK


def show_gpu_ways() -> None:
    """Print each way to run models on a GPU, and what it lacks on this machine."""
    from engine.machine import tools
    from engine.report import grid
    from engine.runtimes import requirements

    print("models on a GPU:")
    ways = requirements.for_ways(lambda tool: tools.version_of(tool) != tools.MISSING)
    rows = [(name, f"missing: {', '.join(lacks)}" if lacks else "all that it needs is here")
            for name, lacks in ways.items()]  # fmt: skip
    grid.show(rows, indent=2)
    print()


def _show_commands(missing: Sequence[str]) -> None:
    """Print the commands that install the missing tools, one for each extra of this project."""
    from engine.report import grid

    by_command: dict[str, list[str]] = {}
    for tool in missing:
        by_command.setdefault(distribution.command_for(tool), []).append(tool)
    if by_command:
        print("to install what is missing:")
        grid.show([(", ".join(tools), command) for command, tools in by_command.items()], indent=2)
        print()


def _lacks(recipes: Sequence[Path]) -> Exit:
    """Print what the machine lacks to run every job of the recipes, and the one command that installs it."""
    from engine import api
    from engine.runtimes import requirements

    lacks = requirements.for_steps((job.name, job.step) for variant in api.plan(recipes) for job in variant.jobs)
    for why, names in lacks.waits.items():
        print(f"{', '.join(names)} would wait for {why}")
    if lacks.command:
        print(f"missing: {', '.join((*lacks.absent, *lacks.drivers))}")
        print(f"install: {lacks.command}")
    if lacks.command or lacks.waits:
        return Exit.WAITING
    print("nothing is missing: every job can run here")
    return Exit.OK


def _cluster(address: str, recipes: Sequence[Path]) -> Exit:
    """Print what each node of a cluster has, and which jobs of the recipes could never run there."""
    from contextlib import closing

    from engine import api
    from engine.cluster.machines import overview
    from engine.cluster.orders import tier_of
    from engine.cluster.ray_engine import RayEngine
    from engine.report import grid
    from engine.runtimes.registry import runtimes

    session = api.session(recipes) if recipes else None
    jobs = [*session.jobs] if session is not None else []
    remote = tier_of(session.lookup.store).settings.url if session is not None else ""
    tools = dict.fromkeys((*_TOOLS, *(name for each in runtimes().values() for name in each.tools_for)))
    with closing(RayEngine(address)) as engine:
        cluster = overview(engine, jobs, tools, remote=remote)
        warning = engine.warning
    grid.show([(name, f"left out: {trouble}" if trouble else has) for name, has, trouble in cluster.nodes])
    if warning:
        print(f"warning: {warning}")
    for name, lacks in cluster.never.items():
        print(f"{name} could never run: {'; '.join(lacks) or 'there is no node'}")
    if cluster.never or all(trouble for _, _, trouble in cluster.nodes):
        return Exit.WAITING
    return Exit.OK


def _file_systems() -> str:
    """Return whether builds recognize unchanged files by their times, or where and why each build reads every file."""
    from engine.system.file_systems import kind_of, tells_changes

    places = {
        "this folder": ".",
        "the store": _store(),
        "Python": sys.prefix,
        "recipe": str(Path(__file__).parent),
        "the GPU's driver": shutil.which("nvidia-smi"),
    }
    present = {name: place for name, place in places.items() if place is not None and os.path.exists(place)}
    unreliable = [f"{name} ({kind_of(place)})" for name, place in present.items() if not tells_changes(place)]
    if not unreliable:
        return "recognized by their time stamps, without reading them"
    return "\n  ".join(
        [
            "read in each build, because time stamps do not show every change here",
            *unreliable,
            "hint: a disk with ext4, xfs or btrfs, for example a volume of the container, makes builds faster",
        ]
    )


def _triton() -> str:
    """Return the Triton server that `recipe serve` would start, or the reasons why there is none."""
    from engine import server as serving
    from engine.errors import StepError

    try:
        installation = serving.find(pull=False)
    except StepError as error:
        return "\n  ".join(["none", *error.facts, f"hint: {error.hint}"])
    return f"{installation.version or 'one'} ({installation.kind}): {installation.why}"


def _store() -> str:
    """Return the path of the store that a build in this folder uses. Raises UserError for a wrong `recipe.toml`."""
    return os.environ.get("RECIPE_CACHE") or cache_of(_HERE)


def _settings() -> list[tuple[str, str, str]]:
    """Return the settings of builds in this folder, each with its value and its origin. Raises UserError."""
    from engine.builder.executors.executor import default_slots
    from engine.recipe import settings_file
    from engine.store.remote import settings

    root = root_of(_HERE)
    project = settings_file.of_project(root)
    by_project, by_default = f"by {os.path.relpath(os.path.join(root, 'recipe.toml'))}", "by default"
    variables = [name for name in ("RECIPE_CACHE", settings.REMOTE) if os.environ.get(name)]
    remote = settings.of(Path(root))
    proposed = by_project if remote is not None and remote.proposed else "by the user's config.toml"
    by = {
        "cache": by_project if "cache" in project else by_default,
        "jobs": by_project if "jobs" in project else by_default,
        "remote": proposed if remote is not None else by_default,
        **{name.removeprefix("RECIPE_").lower(): f"by {name}" for name in variables},
    }
    values = {"cache": _store(), "jobs": str(project.get("jobs") or default_slots())}
    values["remote"] = "none" if remote is None else remote.url
    return [(name, redaction.redacted(value), by[name]) for name, value in values.items()]
