"""A tiny model through the whole program: builds, rebuilds, explanations, failures."""

import json
import os
import shutil

import fake_docker
import pytest
import tiny_project
from program import Program
from report_pages import Numbers, resolved
from tiny_project import CHAIN, HEAVY, RECIPE

import engine


def write(project, text=RECIPE, name="r.yaml"):
    (project.folder / name).write_text(text)


def edit(project, *edits, name="r.yaml"):
    text = (project.folder / name).read_text()
    for old, new in edits:
        assert old in text
        text = text.replace(old, new)
    (project.folder / name).write_text(text)


@pytest.fixture(scope="module")
def unchanged(tmp_path_factory):
    """The built project in another place, up to date there: for tests that change none of its files."""
    folder = tmp_path_factory.mktemp("tiny") / "copy"
    shutil.copytree(tiny_project.built(), folder, copy_function=shutil.copy2)
    program = Program(folder)
    assert program.states("r.yaml") == dict.fromkeys(CHAIN, "cached"), "a copy rebuilds nothing"
    return program


@pytest.fixture
def project(tmp_path):
    """A copy of the built project, store and all, in another place."""
    shutil.copytree(tiny_project.built(), tmp_path / "copy", copy_function=shutil.copy2)
    return Program(tmp_path / "copy")


def rebuilt(project, *words, expect=0):
    """Return the jobs that a build makes, after checking that `why` names each or an earlier one beforehand."""
    findings = project.why("r.yaml", *words)
    built = {job for job, state in project.states("r.yaml", *words, expect=expect).items() if state == "built"}
    announced = {job for job, finding in findings.items() if finding["state"] != "cached"}
    assert built <= announced
    for job, finding in findings.items():
        if finding["state"] == "stale":
            assert finding["changes"], job
            assert job in built
    return built


def test_an_up_to_date_build_imports_nothing_heavy(unchanged):
    assert "up to date" in unchanged("build", "r.yaml", expect=0).stderr
    assert not unchanged.imports("build", "r.yaml") & HEAVY
    assert not unchanged.imports("build", "r.yaml", "--json") & HEAVY
    assert set(unchanged.states("r.yaml").values()) == {"cached"}


def test_the_history_of_a_build_has_the_figures_of_show(unchanged):
    [variant] = json.loads(unchanged("history", "r.yaml", "--json", expect=0).stdout)
    [build] = variant["builds"]
    shown = unchanged.shown("r.yaml")
    assert {run["job"]: run["state"] for run in build["runs"]} == dict.fromkeys(CHAIN, "built")
    assert build["figures"]["size"] == shown["size"]
    assert build["figures"]["cosine"] == shown["validation"]["cosine"]["mean"]
    [ours] = [row for row in shown["bench"] if row["ours"]]
    [latency] = build["figures"]["latencies"]
    assert (latency["p50_ms"], latency["interval"]) == (ours["p50_ms"], ours["intervals"]["p50_ms"])
    assert unchanged("diff", "r.yaml", expect=0).stdout.splitlines()[-1] == "nothing differs"


def test_a_difference_names_the_row_and_what_a_build_would_run(project):
    edit(project, ("sequence: [1, 16, 32]", "sequence: [1, 8, 32]"))
    [variant] = json.loads(project("diff", "r.yaml", "--json", expect=0).stdout)["variants"]
    changed = {job["job"]: job for job in variant["jobs"] if job["change"] != "same"}
    findings = project.why("r.yaml")
    assert {name for name, job in changed.items() if not job["is_stored"]} == {
        name for name, finding in findings.items() if finding["state"] != "cached"
    }
    rows = {change["row"] for job in changed.values() for change in job["rows"]}
    assert rows
    assert rows <= {change["row"] for finding in findings.values() for change in finding["changes"]}


def test_several_recipes_are_one_table(unchanged):
    shutil.copy(unchanged.folder / "r.yaml", unchanged.folder / "other.yaml")
    edit(unchanged, ("name: tiny", "name: other"), name="other.yaml")
    lines = unchanged("show", "r.yaml", "other.yaml", expect=0).stdout.splitlines()
    assert [line.split()[:3] for line in lines[1:3]] == [["tiny", "up", "to"], ["other", "1", "of"]]
    assert unchanged("show", "r.yaml", "--markdown", expect=0).stdout.startswith("| recipe | state | size |")
    assert unchanged("show", "r.yaml", "--csv", expect=0).stdout.startswith("recipe,variant,precision,")


def test_the_page_of_a_build_has_the_numbers_of_show(unchanged):
    assert unchanged("report", "r.yaml", "-o", "page.html", expect=0).stdout == "page.html\n"
    shown = json.loads(unchanged("show", "r.yaml", "--json", expect=0).stdout)
    past = json.loads(unchanged("history", "r.yaml", "--json", expect=0).stdout)
    text = (unchanged.folder / "page.html").read_text("utf-8")
    marked = Numbers(text).marked
    assert len(marked) > 50
    paths = {"show": shown, "history": past}
    assert [path for path, value, _, _ in marked if resolved(paths, path) != value] == []
    figures = {f"show.0.bench.{number}.p50_ms" for number in range(len(shown[0]["bench"]))}
    assert {"show.0.size", "show.0.validation.cosine.worst", *figures} <= {path for path, *_ in marked}


def test_the_package_is_named_and_its_image_built_by_docker(project, tmp_path):
    folder = str(project.folder / "build" / "tiny")
    assert project("package", "r.yaml", expect=0).stdout == f"{folder}\n"
    home = tmp_path / "docker"
    fake_docker.install(tmp_path / "bin", home)
    project.environment |= {"FAKE_DOCKER": str(home), "PATH": f"{tmp_path / 'bin'}:{os.environ['PATH']}"}
    [row] = json.loads(project("package", "r.yaml", "--image", "--json", expect=0).stdout)
    assert row == {"recipe": "tiny", "package": folder, "image": "tiny-text:local"}
    assert fake_docker.calls(home)[-1]["words"] == ["build", "--tag", "tiny-text:local", folder]
    pushed = project("package", "r.yaml", "--push", "registry.example.com/ml", expect=0).stdout
    image = f"registry.example.com/ml/tiny-text@{fake_docker.DIGEST}"
    assert pushed == f"{folder}: the image {image}, manifests in deploy/tiny\n"
    assert f"image: {image}" in (project.folder / "deploy" / "tiny" / "kubernetes.yaml").read_text()
    assert "write HOST[:PORT][/FOLDER]" in project("package", "r.yaml", "--push", "https://r", expect=2).stderr
    assert "--manifests needs --push" in project("package", "r.yaml", "--manifests", "m", expect=2).stderr
    to_file = project("package", "r.yaml", "--push", "r.example.com", "--manifests", "r.yaml/m", expect=2)
    assert "--manifests: r.yaml is a file" in to_file.stderr
    write(project, RECIPE.replace("name: tiny", "name: tiny2"), "other.yaml")
    (home / "denied").write_text("tiny2-text")
    both = project("package", "r.yaml", "other.yaml", "--push", "registry.example.com/ml", "--json", expect=1)
    assert [row["image"] for row in json.loads(both.stdout)] == [image]
    assert "docker cannot push registry.example.com/ml/tiny2-text:" in both.stderr
    (home / "silent").touch()
    failed = project("package", "r.yaml", "--image", expect=1)
    assert "no image can be built on this machine" in failed.stderr
    assert "docker build --tag NAME:local ." in failed.stderr


@pytest.mark.parametrize(
    ("edits", "expected", "row"),
    [
        ([("name: tiny", "name: other")], {"package"}, "options.serving.model_name"),
        ([("sequence: 8", "sequence: 9")], {"bench"}, "options.shapes"),
        ([("[1, 1, 4]", "[1, 1, 8]")], {"package"}, "options.serving.largest.batch"),
    ],
    ids=["name", "bench shape", "profile"],
)
@pytest.mark.sample(1)
def test_a_change_rebuilds_only_what_depends_on_it(project, edits, expected, row):
    edit(project, *edits)
    changes = [change for finding in project.why("r.yaml").values() for change in finding["changes"]]
    assert any(change["row"].startswith(row) for change in changes), changes
    assert rebuilt(project) == expected


@pytest.mark.whole
def test_a_missed_bound_withholds_the_package_and_the_mended_bound_measures_nothing_again(project):
    shutil.rmtree(project.folder / "build")
    shutil.rmtree(project.folder / "cache")
    edit(project, ("cosine: {at_least: 0.5}", "cosine: {at_least: 1}"))
    failed = project("build", "r.yaml", expect=4)
    assert "below" in failed.stderr
    assert "case" in failed.stderr or "sample" in failed.stderr
    assert not (project.folder / "build").exists()
    edit(project, ("cosine: {at_least: 1}", "cosine: {at_least: 0.5}"))
    assert rebuilt(project) <= {"validate", "bench", "package"}
    assert (project.folder / "build" / "tiny").is_dir()


def test_what_was_overwritten_or_deleted_under_build_is_restored(project):
    project("build", "r.yaml", expect=0)
    config = project.folder / "build" / "tiny" / "tiny" / "config.pbtxt"
    before = config.read_text()
    config.write_text("mine")
    project("build", "r.yaml", expect=0)
    assert config.read_text() == before
    shutil.rmtree(config.parent)
    project("build", "r.yaml", expect=0)
    assert config.read_text() == before


def test_a_folder_that_was_not_made_by_a_build_is_not_overwritten(project):
    shutil.rmtree(project.folder / "build")
    (project.folder / "build" / "tiny").mkdir(parents=True)
    (project.folder / "build" / "tiny" / "precious").write_text("mine")
    done = project("build", "r.yaml", expect=1)
    assert "is in the way" in done.stderr
    assert (project.folder / "build" / "tiny" / "precious").read_text() == "mine"


def test_show_tells_sizes_numbers_and_tools(unchanged):
    shown = unchanged.shown("r.yaml")
    assert shown["size"] > 0
    assert shown["validation"]["cosine"]["worst"] <= shown["validation"]["cosine"]["mean"]
    [ours, rival] = shown["bench"]
    assert ours["shape"] == {"batch": 1, "sequence": 8}
    assert ours["p50_ms"] > 0
    assert rival["runtime"] == "onnxruntime-fp32"
    tools = {step["job"]: step.get("tools") for step in shown["steps"]}
    assert "torch" in tools["export"]


def test_logs_are_there_for_every_step(unchanged):
    assert "==" in unchanged("logs", "r.yaml", expect=0).stdout
    assert unchanged("logs", "r.yaml", "quantize", expect=0).stdout.strip()
    assert "has no job 'nothing'" in unchanged("logs", "r.yaml", "nothing", expect=2).stderr


def test_check_writes_nothing(project):
    shutil.rmtree(project.folder / "cache")
    shutil.rmtree(project.folder / "build")
    before = sorted(project.folder.rglob("*"))
    assert "is fine" in project("check", "r.yaml", expect=0).stdout
    assert sorted(project.folder.rglob("*")) == before


def test_check_holds_the_recipe_against_a_model_that_is_here(project):
    edit(project, ("[1, 16, 32]", "[1, 16, 100000]"))
    done = project("check", "r.yaml", expect=2)
    assert "r.yaml:5:" in done.stderr


def test_a_link_that_leads_elsewhere_is_seen_by_an_up_to_date_build(project):
    import models

    (project.folder / "model").rename(project.folder / "m1")
    models.checkpoint(project.folder / "m2", "bert", task="text-classification", seed=2)
    (project.folder / "model").symlink_to("m1")
    for _ in range(2):
        assert set(project.states("r.yaml", "--to", "fetch").values()) == {"cached"}
    (project.folder / "model").unlink()
    (project.folder / "model").symlink_to("m2")
    assert project.states("r.yaml", "--to", "fetch") == {"fetch": "built"}


def test_a_dry_run_builds_nothing(project):
    edit(project, ("sequence: 8", "sequence: 10"))
    assert "would build tiny bench" in " ".join(project("build", "r.yaml", "--dry-run", expect=0).stdout.split())
    assert rebuilt(project) == {"bench"}


def test_to_builds_no_further(project):
    shutil.rmtree(project.folder / "cache")
    assert project.states("r.yaml", "--to", "fetch") == {"fetch": "built"}
    done = project("build", "r.yaml", "--to", "nowhere", expect=2)
    assert "there is no step 'nowhere'" in done.stderr


def test_functions_do_what_commands_do(unchanged, monkeypatch):
    monkeypatch.chdir(unchanged.folder)
    [variant] = engine.plan("r.yaml")
    assert [job.name for job in variant.jobs] == list(CHAIN)
    assert engine.build("r.yaml").state == "up to date"
    assert {finding.state for finding in engine.why("r.yaml")} == {"cached"}
    assert len(engine.check("r.yaml")) == 1
    assert engine.show("r.yaml")[0].model.size > 0


@pytest.mark.sample(2)
@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["build"], "RECIPE"),
        (["build", "nothing.yaml"], "nothing.yaml"),
        (["bulid", "r.yaml"], "invalid choice"),
        (["build", "r.yaml", "--jobs", "0"], "not from 1 to 1024"),
        (["build", "r.yaml", "--set", "precison=int8"], "precision"),
        (["why", "r.yaml", "nowhere"], "nowhere"),
        ([], "COMMAND"),
    ],
    ids=" ".join,
)
def test_a_wrong_command_line_is_one_error_and_exit_2(unchanged, words, message):
    done = unchanged(*words, expect=2)
    assert done.stderr.startswith("error: ")
    assert message in done.stderr


def test_one_broken_recipe_does_not_keep_the_others_from_being_built(project):
    shutil.rmtree(project.folder / "build")
    write(project, "extends: base.yaml\nname: tiny\n", "a.yaml")
    write(project, RECIPE.replace("name: tiny\n", ""), "base.yaml")
    write(project, RECIPE.replace("cosine: {at_least: 0.5}", "cosine: 95%"), "broken.yaml")
    recipes = ("a.yaml", "base.yaml", "broken.yaml")
    refused = project("build", *recipes, expect=2)
    assert "hint: write 0.95" in refused.stderr
    assert not (project.folder / "build").exists()
    done = project("build", *recipes, "--keep-going", expect=2)
    assert "note: base.yaml is abstract, skipped" in done.stderr
    assert "failed   broken.yaml\n  broken.yaml:" in done.stderr
    assert "tiny -> build/tiny" in done.stdout
    events = project.events(*recipes, "--keep-going", expect=2)
    [refusal] = [event for event in events if event["event"] == "refused"]
    assert (refusal["path"], refusal["error"]["hint"]) == ("broken.yaml", "write 0.95")
    assert (events[-1]["exit"], list(events[-1]["packages"])) == (2, ["tiny"])
    assert "base.yaml: abstract, skipped" in project("check", *recipes[:2], expect=0).stdout
