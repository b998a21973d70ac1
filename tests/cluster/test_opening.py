"""Addresses of clusters, and what a build there needs before it begins."""

import pytest
from gpu_project import project_in
from program import Program

RECIPE = "recipes/net0.yaml"


@pytest.fixture(scope="module")
def laptop(tmp_path_factory):
    return Program(project_in(tmp_path_factory.mktemp("laptop")))


@pytest.mark.parametrize(
    ("words", "text"),
    [
        (("--on", "slurm://x"), "'slurm://x' is no address of a cluster"),
        (("--on", "auto", "-j", "2"), "-j is about jobs on this machine"),
        (("--on", "auto", "--remake", "all"), "--remake is about jobs on this machine"),
        (("--on", "auto", "--dry-run"), "--dry-run is about jobs on this machine"),
        (("--on", "auto", "--waiting"), "--waiting is about jobs on this machine"),
    ],
)
def test_a_wrong_command_line_is_refused_before_anything_runs(laptop, words, text):
    refused = laptop("build", RECIPE, *words, expect=2)
    assert text in refused.stderr
    assert not (laptop.folder / "build").exists()


def test_this_machine_is_the_default_and_has_a_name(laptop):
    assert laptop("build", RECIPE, "--on", "local", "--to", "fetch", expect=0).returncode == 0
