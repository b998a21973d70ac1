"""A tiny model through the whole program: builds, rebuilds, explanations, failures."""

import json
import os
import shutil
import signal
import subprocess
import sys
import time

import fake_docker
import fake_wheels
import pytest
import tiny_project
from program import Program
from report_pages import Numbers, resolved
from tiny_project import CHAIN, HEAVY, RECIPE, SAMPLES


def write(project, text=RECIPE, name="r.yaml"):
    (project.folder / name).write_text(text)


def edit(project, *edits, name="r.yaml"):
    text = (project.folder / name).read_text()
    for old, new in edits:
        assert old in text
        text = text.replace(old, new)
    (project.folder / name).write_text(text)


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


def test_a_copy_of_a_project_rebuilds_nothing(project):
    assert set(project.states("r.yaml").values()) == {"cached"}
    assert (project.folder / "build" / "tiny" / "tiny" / "config.pbtxt").is_file()


def test_an_up_to_date_build_imports_nothing_heavy(project):
    project("build", "r.yaml", expect=0)
    again = project("build", "r.yaml", expect=0)
    assert "up to date" in again.stderr
    assert not project.imports("build", "r.yaml") & HEAVY
    assert not project.imports("build", "r.yaml", "--json") & HEAVY
    assert set(project.states("r.yaml").values()) == {"cached"}


def test_the_history_of_a_build_has_the_figures_of_show(project):
    [variant] = json.loads(project("history", "r.yaml", "--json", expect=0).stdout)
    [build] = variant["builds"]
    [shown] = json.loads(project("show", "r.yaml", "--json", expect=0).stdout)
    assert {run["job"]: run["state"] for run in build["runs"]} == dict.fromkeys(CHAIN, "built")
    assert build["figures"]["size"] == shown["size"]
    assert build["figures"]["cosine"] == shown["validation"]["cosine"]["mean"]
    [ours] = [row for row in shown["bench"] if row["ours"]]
    [latency] = build["figures"]["latencies"]
    assert (latency["p50_ms"], latency["interval"]) == (ours["p50_ms"], ours["intervals"]["p50_ms"])
    assert project("diff", "r.yaml", expect=0).stdout.splitlines()[-1] == "nothing differs"


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


def test_several_recipes_are_one_table(project):
    shutil.copy(project.folder / "r.yaml", project.folder / "other.yaml")
    edit(project, ("name: tiny", "name: other"), name="other.yaml")
    lines = project("show", "r.yaml", "other.yaml", expect=0).stdout.splitlines()
    assert [line.split()[:3] for line in lines[1:3]] == [["tiny", "up", "to"], ["other", "1", "of"]]
    assert project("show", "r.yaml", "--markdown", expect=0).stdout.startswith("| recipe | state | size |")
    assert project("show", "r.yaml", "--csv", expect=0).stdout.startswith("recipe,variant,precision,")


def test_the_page_of_a_build_has_the_numbers_of_show(project):
    assert project("report", "r.yaml", "-o", "page.html", expect=0).stdout == "page.html\n"
    shown = json.loads(project("show", "r.yaml", "--json", expect=0).stdout)
    past = json.loads(project("history", "r.yaml", "--json", expect=0).stdout)
    text = (project.folder / "page.html").read_text("utf-8")
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
    assert row == {"recipe": "tiny", "package": folder, "image": "tiny-text"}
    assert fake_docker.calls(home)[-1]["words"] == ["build", "--tag", "tiny-text", folder]
    (home / "silent").touch()
    failed = project("package", "r.yaml", "--image", expect=1)
    assert "no image can be built on this machine" in failed.stderr
    assert "docker build --tag NAME ." in failed.stderr


@pytest.mark.parametrize(
    "edits",
    [
        [("name: tiny", "# a comment\nname: tiny")],
        [("precision: int8\n", ""), ("name: tiny\n", "precision: int8\nname: tiny\n")],
        [("samples: samples.jsonl", "samples:    'samples.jsonl'")],
        [("agreement: {at_least: 0.1}", "agreement: 0.1")],
        [("cosine: {at_least: 0.5}", "cosine: {at_least: 0.4}")],
    ],
    ids=["comment", "key order", "layout", "shorthand", "bound"],
)
@pytest.mark.sample(1)
def test_what_does_not_matter_rebuilds_nothing(project, edits):
    edit(project, *edits)
    assert rebuilt(project) == set()


def test_a_touched_input_rebuilds_nothing(project):
    for path in (project.folder / "samples.jsonl", *(project.folder / "model").iterdir()):
        os.utime(path)
    assert rebuilt(project) == set()


def test_a_new_readme_beside_the_weights_rebuilds_nothing(project):
    (project.folder / "model" / "README.md").write_text("about")
    assert rebuilt(project) == set()


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


@pytest.mark.whole("tests/mutations has a change of the precision")
def test_another_precision_rebuilds_from_there_and_says_why(project):
    edit(project, ("precision: int8", "precision: fp32"))
    rows = {change["row"]: (change["old"], change["new"]) for change in project.why("r.yaml")["validate"]["changes"]}
    assert rows["recipe.precision"] == ("int8", "fp32")
    assert rebuilt(project) == {"validate", "bench", "package"}


@pytest.mark.whole("tests/mutations has a change of a sample")
def test_new_samples_are_run_again_but_the_package_stays(project):
    (project.folder / "samples.jsonl").write_text(SAMPLES.replace("bad", "great"))
    [change] = project.why("r.yaml")["reference"]["changes"]
    assert change["row"] == "inputs.samples"
    assert rebuilt(project) == {"reference", "validate"}


@pytest.mark.whole
def test_new_weights_rebuild_all_that_holds_them(project):
    import models

    shutil.rmtree(project.folder / "model")
    models.checkpoint(project.folder / "model", "bert", task="text-classification", seed=1)
    assert "inputs.source" in {change["row"] for change in project.why("r.yaml")["fetch"]["changes"]}
    assert rebuilt(project) == set(CHAIN)


@pytest.mark.whole
def test_an_upgraded_tool_rebuilds_the_steps_that_use_it(project, tmp_path):
    info = fake_wheels.install(tmp_path / "upgrade", "transformers", "99.0", {})
    project("build", "r.yaml", expect=0)
    project.environment["PYTHONPATH"] = os.pathsep.join([str(info.parent), os.environ.get("PYTHONPATH", "")])
    [change] = project.why("r.yaml")["export"]["changes"]
    assert (change["row"], change["new"]) == ("tools.transformers", "99.0")
    built = rebuilt(project)
    assert {"export", "reference"} <= built
    # The new version exports the same bytes: the rebuild stops there.
    assert not built & {"fetch", "shape-infer", "fuse", "quantize", "package"}


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


@pytest.mark.whole
def test_a_matrix_shares_every_step_that_it_can(project):
    shutil.rmtree(project.folder / "cache")
    text = RECIPE.replace("name: tiny", "name: tiny-${precision}-${bench.threads}")
    text = text.replace("precision: int8\n", "matrix: {precision: [int8, fp32], bench.threads: [1, 2]}\n")
    write(project, text)
    events = project.events("r.yaml")
    built = [event["job"] for event in events if event["event"] == "end" and event["state"] == "built"]
    once, each_model, each_variant = CHAIN[:6], ("validate",), ("bench", "package")
    expected = dict.fromkeys(once, 1) | dict.fromkeys(each_model, 2) | dict.fromkeys(each_variant, 4)
    assert {job: built.count(job) for job in CHAIN} == expected
    assert len(events[-1]["packages"]) == 4


def test_show_tells_sizes_numbers_and_tools(project):
    [shown] = json.loads(project("show", "r.yaml", "--json", expect=0).stdout)
    assert shown["size"] > 0
    assert shown["validation"]["cosine"]["worst"] <= shown["validation"]["cosine"]["mean"]
    [ours, rival] = shown["bench"]
    assert ours["shape"] == {"batch": 1, "sequence": 8}
    assert ours["p50_ms"] > 0
    assert rival["runtime"] == "onnxruntime-fp32"
    tools = {step["job"]: step.get("tools") for step in shown["steps"]}
    assert "torch" in tools["export"]


def test_logs_are_there_for_every_step(project):
    assert "==" in project("logs", "r.yaml", expect=0).stdout
    assert project("logs", "r.yaml", "quantize", expect=0).stdout.strip()
    assert "has no job 'nothing'" in project("logs", "r.yaml", "nothing", expect=2).stderr


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


@pytest.mark.usefixtures("interruptible")
@pytest.mark.whole("tests/builder/executors interrupts builds of toy steps")
def test_an_interrupt_exits_130_and_the_next_build_completes(project):
    shutil.rmtree(project.folder / "cache")
    command = [sys.executable, "-m", "engine", "build", "r.yaml", "--json"]
    running = subprocess.Popen(
        command, cwd=project.folder, env=project.environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    for line in running.stdout:
        if json.loads(line).get("job") == "export":
            break
    time.sleep(0.5)
    running.send_signal(signal.SIGINT)
    out, err = running.communicate(timeout=300)
    assert running.returncode == 130
    assert json.loads(out.splitlines()[-1])["state"] == "interrupted"
    assert "Traceback" not in err
    assert list((project.folder / "cache" / "staging").iterdir()) == []
    states = project.states("r.yaml", "--to", "fuse")
    assert states["fetch"] == "cached"
    assert states["fuse"] == "built"


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


@pytest.mark.whole("tests/mutations has fewer CPUs")
def test_fewer_cpus_are_seen_by_an_up_to_date_build(project):
    for _ in range(2):
        project("build", "r.yaml", expect=0)
    one = min(os.sched_getaffinity(0))
    code = f"import os; os.sched_setaffinity(0, {{{one}}}); from engine.cli import main; main()"
    command = [sys.executable, "-c", code, "build", "r.yaml", "--json"]
    done = subprocess.run(
        command, cwd=project.folder, env=project.environment, capture_output=True, text=True, check=True
    )
    ended = [json.loads(line) for line in done.stdout.splitlines()]
    assert {e["job"] for e in ended if e["event"] == "end" and e["state"] == "built"} == {"bench"}


@pytest.mark.sample(1)
@pytest.mark.parametrize(
    "words", [["build", "r.yaml"], ["build", "r.yaml", "--json"], ["show", "r.yaml"]], ids=" ".join
)
def test_a_reader_that_goes_away_is_no_error(project, words):
    for _ in range(2):
        project("build", "r.yaml", expect=0)
    reader, writer = os.pipe()
    os.close(reader)
    command = [sys.executable, "-m", "engine", *words]
    done = subprocess.run(
        command,
        cwd=project.folder,
        env=project.environment,
        stdout=writer,
        stderr=subprocess.PIPE,
        text=True,
        check=False,
    )
    os.close(writer)
    assert "Traceback" not in done.stderr
    assert done.returncode == 0


def test_a_dry_run_builds_nothing(project):
    edit(project, ("sequence: 8", "sequence: 10"))
    assert "would build tiny bench" in " ".join(project("build", "r.yaml", "--dry-run", expect=0).stdout.split())
    assert rebuilt(project) == {"bench"}


def test_to_builds_no_further(project):
    shutil.rmtree(project.folder / "cache")
    assert project.states("r.yaml", "--to", "fetch") == {"fetch": "built"}
    done = project("build", "r.yaml", "--to", "nowhere", expect=2)
    assert "there is no step 'nowhere'" in done.stderr


def test_functions_do_what_commands_do(project):
    code = """
import engine
[variant] = engine.plan("r.yaml")
print([job.name for job in variant.jobs])
print(engine.build("r.yaml").state)
print({finding.state for finding in engine.why("r.yaml")})
print(len(engine.check("r.yaml")), engine.show("r.yaml")[0].model.size > 0)
"""
    done = subprocess.run(
        [sys.executable, "-c", code],
        cwd=project.folder,
        env=project.environment,
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.splitlines() == [str(list(CHAIN)), "up to date", "{'cached'}", "1 True"]


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
def test_a_wrong_command_line_is_one_error_and_exit_2(project, words, message):
    done = project(*words, expect=2)
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
