"""Every mutation of the tables: exactly the right jobs are made again, and `why` named the cause beforehand."""

import importlib
import importlib.util
import os
import platform
import random
import shutil
import subprocess
from functools import cache
from pathlib import Path

import pytest
from mutations import projects, trial
from mutations.actions import new_folder, remove
from mutations.actions_around import cpus, umask, variable
from mutations.mutation import ARCHITECTURE, CHOOSE, MOUNT, RUNTIMES

KINDS = [path.stem.removeprefix("table_") for path in sorted(Path(__file__).parent.glob("table_*.py"))]
SAMPLE = 4
"""How many mutations are tried without `--whole`, each of another kind."""
OTHERWISE = {
    "LC_ALL": "tr_TR.UTF-8",
    "TZ": "Pacific/Kiritimati",
    "PYTHONHASHSEED": "7",
    "USER": "somebody",
    "TMPDIR": "{folder}/temporary",
    "OMP_NUM_THREADS": "3",
    "MKL_NUM_THREADS": "3",
}
"""What a machine of the same kind may have otherwise."""


def named():
    """Return every mutation by its kind and sentence."""
    tables = {kind: importlib.import_module(f"mutations.table_{kind}").TABLE for kind in KINDS}
    mutations = [(f"{kind}: {each.says}", each) for kind, table in tables.items() for each in table]
    assert len(dict(mutations)) == len(mutations) > 200, "two mutations of one table say the same"
    return dict(mutations)


def pytest_generate_tests(metafunc):
    if "mutation" in metafunc.fixturenames:
        chosen = named()
        if not metafunc.config.getoption("whole"):
            # A project that is built by a copy of the program compiles the copy: test_code_of_jobs.py is quicker.
            quick = {name for name, each in chosen.items() if each.project not in ("source", "task in recipe")}
            chance = random.Random(int(os.environ["RECIPE_SAMPLE_SEED"]))
            kinds = chance.sample(sorted({name.partition(":")[0] for name in quick}), SAMPLE)
            names = [chance.choice(sorted(name for name in quick if name.startswith(f"{kind}: "))) for kind in kinds]
            chosen = {name: chosen[name] for name in names}
        metafunc.parametrize("mutation", [pytest.param(each, id=name) for name, each in chosen.items()])


@cache
def _can(need: str) -> bool:
    return _TRIED[need]()


def _may_mount() -> bool:
    if shutil.which("unshare") is None:
        return False
    command = ["unshare", "-m", "sh", "-c", "mount --bind /proc/version /proc/cpuinfo"]
    return subprocess.run(command, capture_output=True, check=False).returncode == 0


def _may_choose() -> bool:
    return shutil.which("taskset") is not None and {0, 1} <= os.sched_getaffinity(0)


def _may_rename() -> bool:
    return platform.machine() == "x86_64" and shutil.which("setarch") is not None


def _has_openvino() -> bool:
    return importlib.util.find_spec("openvino") is not None


_TRIED = {ARCHITECTURE: _may_rename, MOUNT: _may_mount, CHOOSE: _may_choose, RUNTIMES: _has_openvino}


@pytest.mark.slow
def test_a_mutation_rebuilds_exactly_what_it_reaches(mutation, built, tmp_path):
    if mutation.needs and not _can(mutation.needs):
        pytest.skip(f"one cannot {mutation.needs} on this machine")
    trial.try_it(mutation, projects.copy_of(built(mutation.project), tmp_path / "copy"))


@pytest.mark.slow
@pytest.mark.sample(1)
@pytest.mark.parametrize("project", ["bert", "net", "matrix"])
@pytest.mark.whole("the mutations of the environment; tests/e2e/test_remake.py")
def test_what_does_not_count_changes_no_byte(project, built, tmp_path):
    before = trial.artifacts(built(project).build())
    place = projects.copy_of(built(project), tmp_path / "another place" / "copy")
    for action in (remove("cache", "build"), new_folder("temporary"), variable(**OTHERWISE), umask(0o077)):
        action(place)
    if len(os.sched_getaffinity(0)) > 1 and shutil.which("taskset"):
        cpus(str(min(os.sched_getaffinity(0))))(place)
    artifacts = trial.artifacts(place.build())
    assert artifacts.keys() == before.keys()
    assert {job for job in artifacts if artifacts[job] != before[job]} == {
        job for job in artifacts if job.endswith("bench")
    }
