"""Every mutation of the tables: exactly the right jobs are made again, and `why` named the cause beforehand."""

import os
import shutil

import pytest
from mutations import projects, tables, trial
from mutations.actions import remove
from mutations.actions_around import cpus, new_folder, umask, variable

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


def pytest_generate_tests(metafunc):
    if "mutation" in metafunc.fixturenames:
        whole = metafunc.config.getoption("whole")
        chosen = tables.ALL if whole else tables.sample(int(os.environ["RECIPE_SAMPLE_SEED"]))
        metafunc.parametrize("mutation", [pytest.param(each, id=name) for name, each in chosen.items()])


@pytest.mark.slow
def test_a_mutation_rebuilds_exactly_what_it_reaches(mutation, built, tmp_path):
    if (reason := tables.impossible_here(mutation)) is not None:
        pytest.skip(reason)
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
