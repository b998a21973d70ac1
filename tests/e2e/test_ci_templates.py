"""The CI templates of the documents: their shell steps, run in fresh copies of a project with a remote."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import models
import pytest
import yaml
from program import Program
from tiny_project import CHAIN, OF_ONNX, RECIPE, SAMPLES

ROOT = Path(__file__).parent.parent.parent
GITHUB, GITLAB = ROOT / "docs" / "ci" / "github-actions.yml", ROOT / "docs" / "ci" / "gitlab-ci.yml"
INSTALL = "pip install -r requirements.txt"
JOBS = [job for job in CHAIN if job != "export"]


def parsed(path):
    # All scalars as text: YAML 1.1 reads the key `on` as a truth value.
    return yaml.load(path.read_text(), Loader=yaml.BaseLoader)


READING = {"AWS_ACCESS_KEY_ID": "reader", "AWS_SECRET_ACCESS_KEY": "reader-secret"}
WRITING = {"RECIPE_WRITE_AWS_ACCESS_KEY_ID": "writer", "RECIPE_WRITE_AWS_SECRET_ACCESS_KEY": "writer-secret"}
NOT_SECRET = ("RECIPE_REMOTE", "RECIPE_TRUST", "AWS_REGION")
"""What is written in the file on GitHub, and what the project's variables are on GitLab."""


def github(event, secrets):
    """Return the shell commands and the variables of the job that an event starts, with the secrets that it gets."""
    template = parsed(GITHUB)
    jobs = [job for job in template["jobs"].values() if f"== '{event}'" in job["if"]]
    assert len(jobs) == 1
    [job] = jobs
    assert set(template["env"]) == set(NOT_SECRET)
    variables = {}
    for name, value in job["env"].items():
        [secret] = re.fullmatch(r"\$\{\{ secrets\.(\w+) \}\}", value).groups()
        variables[name] = secrets.get(secret, "")  # GitHub gives "" for a secret that the run may not have
    return [step["run"] for step in job["steps"] if "run" in step], variables


def gitlab(event, secrets):
    """Return the same of the template for GitLab, where the job gets all variables that it may have."""
    [job] = parsed(GITLAB).values()
    assert any(
        {"push": "$CI_DEFAULT_BRANCH", "pull_request": "merge_request"}[event] in rule["if"] for rule in job["rules"]
    )
    return job["script"], dict(secrets)


@pytest.fixture(
    params=[github, pytest.param(gitlab, marks=pytest.mark.whole)], ids=lambda param: getattr(param, "__name__", None)
)
def template(request):
    return request.param


@pytest.fixture
def repository(tmp_path):
    """What is committed: a recipe with its lock, samples and a model."""
    folder = tmp_path / "repository"
    (folder / ".git").mkdir(parents=True)
    (folder / "recipes").mkdir()
    models.classifier_with_tokenizer(folder / "model")
    (folder / "recipes" / "samples.jsonl").write_text(SAMPLES)
    recipe = RECIPE.replace("model: {source: model}\n", OF_ONNX).replace(": model", ": ../model")
    (folder / "recipes" / "tiny.yaml").write_text(recipe)
    Program(folder)("lock", "recipes/tiny.yaml", expect=0)
    shutil.rmtree(folder / "cache")
    return folder


class Runner:
    """A CI of our own: each run gets a fresh checkout, and no file of an earlier run."""

    def __init__(self, repository, template, scratch, variables):
        self.repository, self.template, self.scratch = repository, template, scratch
        self.runs = 0
        programs = scratch / "bin"
        programs.mkdir()
        (programs / "recipe").write_text(f'#!/bin/sh\nexec "{sys.executable}" -m engine "$@"\n')
        (programs / "recipe").chmod(0o755)
        self.environment = (
            Program(repository).environment
            | variables
            | {
                "PATH": f"{programs}{os.pathsep}{os.environ['PATH']}",
                "PYTHONPATH": os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")]),
            }
        )
        del self.environment["RECIPE_TRUST_CACHE"]  # nothing is restored here

    def __call__(self, event, secrets, *, most=None):
        """Run the commands up to the first that fails; return what they said and the exit code."""
        self.runs += 1
        checkout = self.scratch / f"run {self.runs}" / "checkout"
        shutil.copytree(self.repository, checkout)
        commands, variables = self.template(event, secrets)
        assert commands[0] == INSTALL
        runs = []
        for command in commands[1:][:most]:
            done = subprocess.run(
                ["bash", "-e", "-c", command], cwd=checkout, env=self.environment | variables, capture_output=True,
                text=True, check=False, timeout=300,
            )  # fmt: skip
            runs.append(done)
            if done.returncode:
                break
        return checkout, runs


def states(done):
    return {line.split()[1]: line.split()[0] for line in done.stderr.splitlines() if line.startswith(("built ", "cach"))
            and len(line.split()) > 1 and line.split()[1] in JOBS}  # fmt: skip


@pytest.mark.slow
def test_main_pushes_and_a_pull_request_reads_and_cannot_write(repository, template, seaweed, tmp_path):
    keys = tmp_path / "keys" / "signing.key"
    keys.parent.mkdir()
    Program(repository)("cache", "keygen", "-o", str(keys), expect=0)
    secrets = READING | WRITING | {"RECIPE_SIGNING_KEY": keys.read_text()}
    (tmp_path / "ci").mkdir()
    run = Runner(
        repository, template, tmp_path / "ci",
        {
            "RECIPE_REMOTE": seaweed.url(f"ci-{template.__name__}"), "RECIPE_TRUST": Path(f"{keys}.pub").read_text(),
            "AWS_REGION": "us-east-1", "AWS_ENDPOINT_URL": seaweed.environ("reader")["AWS_ENDPOINT_URL"],
            "XDG_CONFIG_HOME": str(tmp_path / "settings"),
        },
    )  # fmt: skip

    checkout, runs = run("push", secrets)
    assert [done.returncode for done in runs] == [0, 0], runs[-1].stderr
    assert states(runs[1]) == dict.fromkeys(JOBS, "built")
    assert f"{len(JOBS)} records went there" in runs[1].stderr
    assert (checkout / "build" / "tiny" / "tiny" / "config.pbtxt").is_file()

    checkout, runs = run("pull_request", READING)
    assert [done.returncode for done in runs] == [0, 0], runs[-1].stderr
    assert states(runs[1]) == dict.fromkeys(JOBS, "cached")
    assert (checkout / "build" / "tiny" / "tiny" / "config.pbtxt").is_file()

    samples = repository / "recipes" / "samples.jsonl"
    samples.write_text(samples.read_text().replace("bad", "sad"))
    _, runs = run("pull_request", READING)
    assert [done.returncode for done in runs] == [2]
    assert "recipes/samples.jsonl: locked " in runs[0].stderr

    Program(repository)("lock", "recipes/tiny.yaml", "--cache", str(tmp_path / "other"), expect=0)
    _, runs = run("pull_request", READING)
    assert {job for job, state in states(runs[1]).items() if state == "built"} == {"reference", "validate"}
    assert "went there" not in runs[1].stderr

    _, [dry] = run("pull_request", {}, most=1)
    assert dry.returncode == 0, f"a fork without any secret builds everything\n{dry.stderr}"


def test_only_the_main_branch_has_what_can_write():
    template = parsed(GITHUB)
    assert template["permissions"] == {"contents": "read"}
    assert "pull_request_target" not in template["on"]
    for job in template["jobs"].values():
        may_write = any(name.startswith("RECIPE_WRITE_") or name == "RECIPE_SIGNING_KEY" for name in job["env"])
        assert may_write == ("'push'" in job["if"]) == (job.get("environment") == "recipes")
    assert template["on"]["push"] == {"branches": ["main"]}
    text = GITLAB.read_text()
    assert "Protect variable" in text
    assert all(name in text for name in [*WRITING, "RECIPE_SIGNING_KEY"])
    assert not {"RECIPE_SIGNING_KEY", *WRITING} & set(parsed(GITLAB)["recipes"]["variables"])


@pytest.mark.parametrize("path", [GITHUB, GITLAB], ids=lambda path: path.name)
def test_no_template_restores_a_store(path):
    text = path.read_text()
    assert "RECIPE_TRUST_CACHE" not in text
    assert "actions/cache" not in text


@pytest.mark.parametrize("path", [GITHUB, GITLAB], ids=lambda path: path.name)
def test_the_document_leads_to_each_template_and_each_uploads_the_packages(path):
    assert f"](ci/{path.name})" in (ROOT / "docs" / "ci.md").read_text()
    text = path.read_text()
    assert "path: build" in text or "paths: [build/]" in text


def test_the_nightly_template_makes_every_job_again():
    template = ROOT / "docs" / "ci" / "github-actions-remake.yml"
    assert f"ci/{template.name}" in (ROOT / "docs" / "ci.md").read_text()
    [job] = parsed(template)["jobs"].values()
    commands = [step["run"] for step in job["steps"] if "run" in step]
    assert commands[0] == INSTALL
    words = [command.replace("${{ matrix.jobs }}", "2").split() for command in commands[1:]]
    assert all(each[0] == "recipe" for each in words)
    assert ["--remake" in each for each in words] == [False, True]
    cases = job["strategy"]["matrix"]["include"]
    assert all(len({case[name] for case in cases}) == len(cases) for name in ("jobs", "timezone", "locale", "threads"))
