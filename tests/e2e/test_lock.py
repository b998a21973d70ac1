"""`recipe lock`, `build --locked` and `build --frozen` through the real command line, on a tiny model."""

import json
import os
import shutil
import sys
from pathlib import Path

import fake_hub
import fake_wheels
import lock_edits
import models
import pytest
import tiny_project
from fake_hub import FIRST, REPO, SECOND, FakeHub
from program import Program
from tiny_project import CHAIN, HEAVY, MARK, RECIPE, SAMPLES

from engine import api
from engine.errors import UsageError

ROOT = Path(__file__).parent.parent.parent
CHILD = RECIPE.replace("  max_abs: {at_most: 100}\n", "")
"""The recipe without what its parent says."""
CACHED = dict.fromkeys(CHAIN, "cached")


@pytest.fixture(scope="module")
def built(tiny_bert, tmp_path_factory):
    """A project that was built and locked; `project` copies it."""
    folder = tmp_path_factory.mktemp("locked") / "project"
    folder.mkdir()
    (folder / "pyproject.toml").write_text("")
    shutil.copytree(tiny_bert, folder / "model")
    (folder / "samples.jsonl").write_text(SAMPLES)
    (folder / "other.jsonl").write_text(SAMPLES)
    (folder / "base.yaml").write_text("validate: {max_abs: {at_most: 100}}\n")
    (folder / "r.yaml").write_text("extends: base.yaml\n" + CHILD)
    program = Program(folder)
    program("lock", "r.yaml", expect=0)
    shutil.copy(folder / "r.lock", folder / "unbuilt.lock.kept")
    shutil.copytree(tiny_project.built() / "cache", folder / "cache", copy_function=shutil.copy2, dirs_exist_ok=True)
    assert program.states("r.yaml", "--locked") == CACHED
    program("lock", "r.yaml", expect=0)
    return folder


@pytest.fixture
def unchanged(built):
    """The project itself, for commands that are refused."""
    return Program(built)


@pytest.fixture
def project(built, tmp_path):
    """A copy of the project, store and all, in which `build --locked` was up to date a moment ago."""
    shutil.copytree(built, tmp_path / "copy", copy_function=shutil.copy2)
    program = Program(tmp_path / "copy")
    assert program.states("r.yaml", "--locked") == CACHED
    return program


def edit(path, old, new):
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new, 1))


def recipe(old, new):
    return lambda folder, _: edit(folder / "r.yaml", old, new)


def lock(old, new):
    return lambda folder, _: lock_edits.edit(folder / "r.lock", old, new)


def locked_value(name):
    """Spoil the digest behind the first `name:` of the lock."""

    def spoil(folder, _):
        text = (folder / "r.lock").read_text()
        start = text.index(f"{name}: ") + len(name) + 2
        lock_edits.write(folder / "r.lock", text[:start] + "0" * 32 + text[start + 32 :])

    return spoil


def samples_with_size_and_time_kept(folder, _):
    path = folder / "samples.jsonl"
    before = path.stat()
    path.write_text(SAMPLES.replace("bad", "sad"))
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))
    assert path.stat().st_size == before.st_size


def weights(folder, _):
    shutil.rmtree(folder / "model")
    models.checkpoint(folder / "model", "bert", task="text-classification", seed=1)


def upgrade(tool):
    def install(folder, environment):
        info = fake_wheels.install(folder / "upgrade", tool, "99.0", {})
        inherited = environment.get("PYTHONPATH", "").split(os.pathsep)
        # In front of the installed ones only for whoever looks along the whole path.
        environment["PYTHONPATH"] = os.pathsep.join([str(info.parent), *filter(None, inherited)])

    return install


def own_code(folder, environment):
    """Copy the program into a project, build with the copy until nothing is left to do, and return its folder."""
    shutil.copytree(ROOT / "engine", folder / "src" / "engine")
    environment["PYTHONPATH"] = str(folder / "src")
    program = Program(folder)
    program.environment = environment
    assert program.states("r.yaml", "--locked") == CACHED
    return folder / "src" / "engine"


def code(file, old, new):
    return lambda folder, environment: edit(own_code(folder, environment) / file, old, new)


MUTATIONS = {
    "a shape": (recipe("sequence: 8", "sequence: 9"), "recipe.bench.shapes.0.axes.sequence of tiny: locked 8, here 9"),
    "the precision": (
        recipe("precision: int8", "precision: fp32"),
        "recipe.precision of tiny: locked int8, here the default",
    ),
    "a bound": (
        recipe("cosine: {at_least: 0.5}", "cosine: {at_least: 0.4}"),
        "recipe.validate.cosine.at_least of tiny: locked 0.5, here 0.4",
    ),
    "a bound of the parent": (
        lambda folder, _: edit(folder / "base.yaml", "100", "99"),
        "recipe.validate.max_abs.at_most of tiny: locked 100.0, here 99.0",
    ),
    "a profile": (recipe("[1, 1, 4]", "[1, 1, 8]"), "recipe.profiles.0.batch.max of tiny: locked 4, here 8"),
    "the name": (recipe("name: tiny", "name: other"), "variant other: not locked, here"),
    "a rival": (
        recipe("[{runtime: onnxruntime}]", "[]"),
        "recipe.bench.against.0.runtime of tiny: locked onnxruntime, here the default",
    ),
    "threads": (
        recipe("bench:\n", "bench:\n  threads: 1\n"),
        "recipe.bench.threads of tiny: locked the default, here 1",
    ),
    "the task": (
        recipe("source: model}", "source: model, task: text-classification}"),
        "recipe.model.task of tiny: locked the default, here text-classification",
    ),
    "a field of the package": (
        recipe("bench:\n", "package: {triton: {max_batch_size: 2}}\nbench:\n"),
        "recipe.package.triton.max_batch_size of tiny: locked the default, here 2",
    ),
    "a budget": (
        recipe("sequence: 8}", "sequence: 8, budget: {p95_ms: 99999}}"),
        "recipe.bench.shapes.0.budget.p95_ms of tiny: locked the default, here 99999.0",
    ),
    "a matrix": (
        recipe("precision: int8\n", "matrix: {precision: [int8, fp32]}\n"),
        "variant tiny-fp32: not locked, here",
    ),
    "no samples": (
        recipe("  samples: samples.jsonl\n", ""),
        "recipe.validate.samples of tiny: locked samples.jsonl, here the default",
    ),
    "other samples": (
        recipe("samples: samples.jsonl", "samples: other.jsonl"),
        "reads.samples of reference in tiny: locked samples.jsonl, here other.jsonl",
    ),
    "a byte of a sample": (samples_with_size_and_time_kept, "samples.jsonl: locked "),
    "one more sample": (
        lambda folder, _: (folder / "samples.jsonl").write_text(SAMPLES + '{"text": "more"}\n'),
        "samples.jsonl: locked ",
    ),
    "the weights": (weights, "model: locked "),
    "the model's settings": (
        lambda folder, _: (folder / "model" / "config.json").write_text(
            (folder / "model" / "config.json").read_text() + " "
        ),
        "model: locked ",
    ),
    "one tool": (upgrade("transformers"), "tools.transformers: locked "),
    "another tool": (upgrade("tritonclient"), "tools.tritonclient: locked "),
    "a step's code": (
        code("steps/quantize.py", "sizes = (precisions.size(fused)", "sizes = (1 * precisions.size(fused)"),
        "code of quantize: locked ",
    ),
    "shared code": (code("kit/triton/served/tokenizer.py", "self", "this"), "code of package: locked "),
    "data of the code": (code("kit/inputs/texts.txt", "\n", "!\n"), "code of reference: locked "),
    "a new step": (
        lambda folder, environment: (own_code(folder, environment) / "steps" / "mark.py").write_text(MARK),
        "job mark of tiny: not locked, here",
    ),
    "the lock's source": (locked_value("  model"), f"model: locked {'0' * 32}, here "),
    "the lock's tool": (lock("  onnx: 1.", "  onnx: 0."), "tools.onnx: locked 0."),
    "the lock's code": (locked_value("  export"), f"code of export: locked {'0' * 32}, here "),
    "the lock's key": (locked_value("        key"), f"key of fetch in tiny: locked {'0' * 32}, here "),
    "the lock's artifact": (locked_value("artifact"), f"artifact of fetch in tiny: locked {'0' * 32}, here "),
    "the lock's recipe": (
        lock("precision: int8", "precision: fp16"),
        "recipe.precision of tiny: locked fp16, here int8",
    ),
    "the lock's options": (lock("opset: 20", "opset: 21"), "options.opset of export in tiny: locked 21, here 20"),
    "the lock's wiring": (
        lock("compiled: quantize", "compiled: fuse"),
        "needs.compiled of validate in tiny: locked fuse",
    ),
    "the lock edited": (
        lambda folder, _: edit(folder / "r.lock", "opset: 20", "opset: 21"),
        "the lock was edited, merged or cut off",
    ),
    "a conflict in the lock": (
        lambda folder, _: edit(folder / "r.lock", "tools:\n", "<<<<<<< HEAD\ntools:\n"),
        "r.lock:9:1: a merge conflict is not resolved",
    ),
    "the lock cut off": (
        lambda folder, _: edit(folder / "r.lock", "\n...\n", "\n"),
        "the lock was edited, merged or cut off",
    ),
    "the lock gone": (lambda folder, _: (folder / "r.lock").unlink(), "r.yaml has no lock"),
    "the model gone": (lambda folder, _: shutil.rmtree(folder / "model"), "names model, which is not there"),
}


QUICK = {"a bound", "a byte of a sample", "one tool", "a step's code", "the lock's artifact", "a conflict in the lock"}
"""One mutation of each kind for every run of the tests; the whole table is in the slow tier."""
BROKEN = ("r.lock:", "the lock was edited", "names model")


@pytest.mark.parametrize(
    ("mutate", "message"),
    [pytest.param(*MUTATIONS[name], id=name, marks=() if name in QUICK else pytest.mark.slow) for name in MUTATIONS],
)
@pytest.mark.sample(2)
def test_a_locked_build_names_whatever_differs_and_builds_nothing(project, mutate, message):
    mutate(project.folder, project.environment)
    before = sorted(path.name for path in (project.folder / "cache" / "records").iterdir())
    done = project("build", "r.yaml", "--locked", "--json", expect=2)
    assert done.stderr.startswith("error: ")
    assert done.stderr.count("error: ") == 1
    assert message in done.stderr
    [refusal] = [json.loads(line) for line in done.stdout.splitlines()]
    assert (refusal["state"], refusal["exit"]) == ("failed", 2)
    assert refusal["error"]["what"] in done.stderr
    assert sorted(path.name for path in (project.folder / "cache" / "records").iterdir()) == before
    if not message.startswith(BROKEN):
        assert "recipe lock r.yaml" in done.stderr
        project("lock", "r.yaml", expect=0)
        project("build", "r.yaml", "--locked", "--dry-run", expect=0)


def test_a_locked_build_names_the_override_that_the_lock_does_not_have(unchanged):
    done = unchanged("build", "r.yaml", "--locked", "--set", "bench.shapes.0.batch=2", expect=2)
    assert "recipe.bench.shapes.0.axes.batch of tiny: locked 1, here 2" in done.stderr
    assert "hint: leave --set out, or write its change into the recipe and run `recipe lock r.yaml`" in done.stderr


def test_python_cannot_lock_an_override(unchanged):
    with pytest.raises(UsageError, match="as it is written: `set` cannot change it"):
        api.lock(unchanged.folder / "r.yaml", set={"precision": "fp32"})


def test_a_dry_run_compares_and_builds_nothing(project):
    (project.folder / "samples.jsonl").write_text(SAMPLES + SAMPLES)
    assert "samples.jsonl: locked " in project("build", "r.yaml", "--locked", "--dry-run", expect=2).stderr
    project("lock", "r.yaml", expect=0)
    assert "would build tiny reference" in " ".join(
        project("build", "r.yaml", "--locked", "--dry-run", expect=0).stdout.split()
    )


def test_an_up_to_date_locked_build_imports_nothing_heavy(project):
    assert not project.imports("build", "r.yaml", "--locked") & HEAVY


@pytest.mark.parametrize(
    "change",
    [
        lambda _folder, _: None,
        recipe("name: tiny", "# a comment\nname: tiny"),
        recipe("samples: samples.jsonl", "samples:    'samples.jsonl'"),
        recipe("agreement: {at_least: 0.1}", "agreement: 0.1"),
        recipe("model: {source: model}", "model: {source: model, weights: safetensors}"),
        lambda folder, _: [os.utime(path) for path in folder.rglob("*")],
        lambda folder, _: (folder / "model" / "README.md").write_text("about"),
        code("steps/shape_infer.py", '"""', '"""Anew: '),
        code("steps/quantize.py", "\n\n", "\n\n# a remark\n"),
    ],
    ids=["nothing", "comment", "layout", "shorthand", "a default", "touch", "readme", "docstring", "remark"],
)
@pytest.mark.sample(1)
def test_what_does_not_matter_keeps_the_lock_valid_and_builds_nothing(project, change):
    change(project.folder, project.environment)
    for _ in range(2):
        assert project.states("r.yaml", "--locked") == CACHED
    assert "up to date" in project("lock", "r.yaml", expect=0).stdout


@pytest.mark.whole("test_what_does_not_matter_keeps_the_lock_valid_and_builds_nothing has a case of the same")
def test_the_order_of_the_fields_does_not_matter(project):
    path = project.folder / "r.yaml"
    path.write_text(path.read_text().replace("precision: int8\n", "") + "precision: int8\n")
    assert project.states("r.yaml", "--locked") == CACHED


@pytest.mark.whole("test_a_locked_build_names_whatever_differs_and_builds_nothing")
def test_two_machines_of_one_kind_write_the_same_bytes(built, tmp_path):
    kinds = {"unbuilt": "unbuilt.lock.kept", "built": "r.lock"}
    for number, (kind, name) in enumerate(kinds.items()):
        folder = tmp_path / f"somewhere else {number}" / "deeper"
        ignored = shutil.ignore_patterns("r.lock", "build", *(["cache"] if kind == "unbuilt" else []))
        shutil.copytree(built, folder, copy_function=shutil.copy2, ignore=ignored)
        program = Program(folder)
        program.environment |= {
            "USER": "somebody", "LOGNAME": "somebody", "HOME": str(tmp_path), "LANG": "tr_TR.UTF-8", "LC_ALL": "C",
            "TZ": "Asia/Tokyo", "PYTHONHASHSEED": str(number + 1), "COLUMNS": "40",
        }  # fmt: skip
        (tmp_path / "cwd").mkdir(exist_ok=True)
        program.folder = tmp_path / "cwd"
        program("lock", str(folder / "r.yaml"), expect=0)
        assert (folder / "r.lock").read_bytes() == (built / name).read_bytes(), kind


def test_a_lock_says_nothing_of_the_place_the_user_or_the_time(built):
    text = (built / "r.lock").read_text()
    assert str(built) not in text
    assert not any(len(part) > 3 and part in text for part in built.parts if part != "project")
    assert sys.prefix not in text
    assert str(ROOT) not in text


def test_a_lock_has_the_keys_and_artifacts_of_the_build(project):
    ended = {event["job"]: event for event in project.events("r.yaml") if event["event"] == "end"}
    text = (project.folder / "r.lock").read_text()
    for job, event in ended.items():
        assert f"key: {event['key']}\n" in text, job
        assert (f"artifact: {event['artifact']}\n" in text) == (job != "bench"), job


def test_a_working_directory_elsewhere_keeps_the_lock_valid(project, tmp_path):
    project.folder = tmp_path
    for _ in range(2):
        assert project.states("copy/r.yaml", "--locked") == CACHED


@pytest.mark.slow
@pytest.mark.whole
def test_an_empty_store_is_filled_by_a_locked_build(project):
    shutil.rmtree(project.folder / "cache")
    assert project.states("r.yaml", "--locked") == dict.fromkeys(CHAIN, "built")
    assert "up to date" in project("lock", "r.yaml", expect=0).stdout


def test_a_selection_is_compared_and_the_rest_is_not(project):
    assert set(project.states("r.yaml", "--locked", "--to", "quantize").values()) == {"cached"}
    edit(project.folder / "samples.jsonl", "bad", "sad")
    assert set(project.states("r.yaml", "--locked", "--to", "quantize").values()) == {"cached"}
    project("build", "r.yaml", "--locked", "--to", "validate", expect=2)
    same, other = ("--set", "precision=int8"), ("--set", "validate.cosine=0.4")
    assert set(project.states("r.yaml", "--locked", "--to", "fuse", *same).values()) == {"cached"}
    refused = project("build", "r.yaml", "--locked", "--to", "fuse", *other, expect=2).stderr
    assert "recipe.validate.cosine.at_least of tiny: locked 0.5, here 0.4" in refused


@pytest.mark.slow
@pytest.mark.whole("tests/lockfile/test_locking.py locks two variants")
def test_of_a_matrix_one_variant_may_be_built(project):
    edit(project.folder / "r.yaml", "precision: int8\n", "matrix: {precision: [int8, fp32]}\n")
    project("lock", "r.yaml", expect=0)
    assert project.states("r.yaml", "--locked", "--only", "precision=int8")["fuse"] == "cached"
    lock_edits.edit(project.folder / "r.lock", "  tiny-fp32:\n    recipe:\n", "  tiny-fp32:\n    recipe:\n      a: b\n")
    assert project.states("r.yaml", "--locked", "--only", "precision=int8")["fuse"] == "cached"
    assert "recipe.a of tiny-fp32" in project("build", "r.yaml", "--locked", expect=2).stderr


@pytest.mark.slow
@pytest.mark.whole("test_a_locked_build_names_whatever_differs_and_builds_nothing")
def test_each_recipe_has_a_lock_of_its_own(project):
    shutil.copy(project.folder / "r.yaml", project.folder / "s.yaml")
    edit(project.folder / "s.yaml", "name: tiny", "name: second")
    assert "s.yaml has no lock" in project("build", "r.yaml", "s.yaml", "--locked", expect=2).stderr
    project("lock", "r.yaml", "s.yaml", expect=0)
    project("build", "r.yaml", "s.yaml", "--locked", expect=0)
    edit(project.folder / "s.yaml", "0.5", "0.4")
    refused = project("build", "r.yaml", "s.yaml", "--locked", expect=2).stderr
    assert "s.lock is not what is here" in refused
    assert set(project.states("r.yaml", "--locked").values()) == {"cached"}


def test_the_section_of_another_machine_is_kept_and_not_checked_here(project):
    there = "- facts:\n    cpu.isa: aarch64\n  variants:\n    tiny:\n      validate:\n        key: " + "0" * 32 + "\n"
    here = "- facts:\n    cpu.isa: "
    lock_edits.edit(project.folder / "r.lock", here, there + here)  # sections are sorted by their facts
    assert project.states("r.yaml", "--locked") == CACHED
    project("lock", "r.yaml", expect=0)
    assert there in (project.folder / "r.lock").read_text()
    (project.folder / "samples.jsonl").write_text(SAMPLES + SAMPLES)
    project("lock", "r.yaml", expect=0)
    assert there not in (project.folder / "r.lock").read_text()


def test_a_lock_that_was_edited_after_an_up_to_date_build_is_noticed_and_so_is_its_mending(project):
    path = project.folder / "r.lock"
    text = path.read_text()
    path.write_text(text.replace("opset: 20", "opset: 21"))
    project("build", "r.yaml", "--locked", expect=2)
    path.write_text(text)
    assert project.states("r.yaml", "--locked") == CACHED
    path.unlink()
    project("build", "r.yaml", "--frozen", expect=2)


@pytest.mark.sample(1)
@pytest.mark.parametrize(
    "words",
    [("--locked", "--frozen"), ("--locked", "--refresh"), ("--frozen", "--refresh"), ("--frozen", "--force", "export")],
    ids=" ".join,
)
def test_what_contradicts_itself_is_refused(unchanged, words):
    assert unchanged("build", "r.yaml", *words, expect=2).stderr.startswith("error: --")


def test_a_frozen_build_needs_neither_sources_nor_tools_nor_code(project):
    program = own_code(project.folder, project.environment)
    shutil.rmtree(project.folder / "model")
    shutil.rmtree(project.folder / "build")
    (project.folder / "samples.jsonl").unlink()
    edit(program / "steps" / "quantize.py", "print(", "print('!', ")
    upgrade("transformers")(project.folder, project.environment)
    for _ in range(2):
        assert project.states("r.yaml", "--frozen") == CACHED
    assert (project.folder / "build" / "tiny" / "tiny" / "config.pbtxt").is_file()
    assert not project.imports("build", "r.yaml", "--frozen") & HEAVY
    assert "would build" not in project("build", "r.yaml", "--frozen", "--dry-run", expect=0).stdout
    project("build", "r.yaml", expect=2)


def test_a_frozen_build_without_the_record_says_what_is_missing(project):
    shutil.rmtree(project.folder / "model")
    shutil.rmtree(project.folder / "cache")
    done = project("build", "r.yaml", "--frozen", expect=1)
    assert "does not exist" in done.stderr
    assert "the store has no record of its locked key" in done.stderr


def test_an_edit_of_the_recipe_is_refused_by_a_frozen_build(project):
    edit(project.folder / "r.yaml", "sequence: 8", "sequence: 9")
    refused = project("build", "r.yaml", "--frozen", expect=2).stderr
    assert "recipe.bench.shapes.0.axes.sequence of tiny: locked 8, here 9" in refused


@pytest.mark.whole("test_a_frozen_build_without_the_record_says_what_is_missing")
def test_a_frozen_build_from_an_empty_store_refuses_what_the_lock_does_not_name(project):
    shutil.rmtree(project.folder / "cache")
    for words in ((), ("--dry-run",)):
        refused = project("build", "r.yaml", "--frozen", "--to", "bench", *words, expect=2).stderr
    assert "the lock names no output of 'bench' of tiny" in refused
    shutil.rmtree(project.folder / "cache")
    weights(project.folder, None)
    assert "model: locked " in project("build", "r.yaml", "--frozen", expect=2).stderr


@pytest.mark.slow
@pytest.mark.whole("test_a_frozen_build_without_the_record_says_what_is_missing")
def test_a_store_that_lost_a_record_is_filled_again_by_both(project):
    for words in ("--locked", "--frozen"):
        event = next(e for e in project.events("r.yaml") if e.get("job") == "fuse" and e["event"] == "end")
        (project.folder / "cache" / "records" / f"{event['key']}.json").unlink()
        assert project.states("r.yaml", words)["fuse"] == "built"
        assert project.states("r.yaml", words) == CACHED


@pytest.mark.slow
def test_the_commit_of_a_revision_comes_from_the_lock_and_nobody_is_asked(empty, tmp_path):
    (empty.folder / "r.yaml").write_text(f"name: r\nmodel: {{source: 'hf:{REPO}'}}\n")
    repositories = {REPO: {FIRST: fake_hub.model(), SECOND: fake_hub.model(fill=1)}}
    with FakeHub(repositories=repositories) as hub:
        empty.environment |= {"HF_ENDPOINT": hub.endpoint, "HF_HOME": str(tmp_path / "hf"), "NO_PROXY": "*"}
        empty.environment.pop("HF_HUB_OFFLINE", None)
        empty("lock", "r.yaml", expect=0)
        text = (empty.folder / "r.lock").read_text()
        assert f"hf:{REPO}@main: '{FIRST}'" in text or f"hf:{REPO}@main: {FIRST}" in text.replace("'", "")
        hub.branches["main"] = SECOND
        shutil.rmtree(empty.folder / "cache")
        for words in ("--locked", "--frozen"):
            hub.requests.clear()
            [_, *ended, _] = empty.events("r.yaml", words, "--to", "fetch")
            assert [event["state"] for event in ended if event["event"] == "end"] == [
                "built" if words == "--locked" else "cached"
            ]
            assert not [request for request, _ in hub.requests if "/revision/main" in request]
        assert "up to date" not in empty("lock", "r.yaml", expect=0).stdout  # the artifact is known now
        assert SECOND not in (empty.folder / "r.lock").read_text()
        empty("lock", "r.yaml", "--refresh", expect=0)
        assert SECOND in (empty.folder / "r.lock").read_text()
        edit(empty.folder / "r.yaml", f"'hf:{REPO}'", f"'hf:{REPO}', revision: v1")
        hub.requests.clear()
        refused = empty("build", "r.yaml", "--locked", expect=2).stderr
        assert f"hf:{REPO}@v1: not locked, here not looked up" in refused
        assert hub.requests == []


@pytest.mark.whole("test_the_commit_of_a_revision_comes_from_the_lock_and_nobody_is_asked")
def test_a_locked_commit_does_not_become_what_an_ordinary_build_remembers(empty, tmp_path):
    (empty.folder / "r.yaml").write_text(f"name: r\nmodel: {{source: 'hf:{REPO}'}}\n")
    repositories = {REPO: {FIRST: fake_hub.model(), SECOND: fake_hub.model(fill=1)}}
    with FakeHub(repositories=repositories) as hub:
        empty.environment |= {"HF_ENDPOINT": hub.endpoint, "HF_HOME": str(tmp_path / "hf"), "NO_PROXY": "*"}
        empty("lock", "r.yaml", expect=0)
        hub.branches["main"] = SECOND
        empty("build", "r.yaml", "--to", "fetch", "--refresh", expect=0)
        empty("build", "r.yaml", "--to", "fetch", "--locked", expect=0)
        note = json.loads((empty.folder / "cache" / "resolutions" / "hub.json").read_text())
        assert note[f"hf:{REPO}@main"] == SECOND


def test_lock_as_a_function(project):
    import subprocess

    code = "import engine; [one] = engine.lock('r.yaml'); print(one.changed, len(one.lock.variants['tiny'].jobs))"
    done = subprocess.run(
        [sys.executable, "-c", code],
        cwd=project.folder, env=project.environment, capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert done.stdout.split() == ["False", str(len(CHAIN))]
